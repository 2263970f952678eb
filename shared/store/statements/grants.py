"""What was allowed beyond one call: found for a call, made as a bypass, ended.

A grant made by a decision is written with it (`waiting.DECIDE`). Every change stands in the audit in one statement.
"""

from __future__ import annotations

from shared.store.statements import named

# What holds for a call of this principal in this session, at this moment. Whoever granted it must still be of the team.
GRANTS_STANDING = named(
    "grants_standing",
    """
select g.id, g.scope, g.patterns from grants g join principals p on p.id = g.granted_by and p.disabled_at is null
where g.principal = %(principal)s and g.revoked_at is null and (g.session is null or g.session = %(session)s)
  and (g.expires_at is null or g.expires_at > clock_now())
union all
select g.id, g.scope, g.patterns from grants g join principals p on p.id = g.granted_by and p.disabled_at is null
where g.session = %(session)s and g.scope = 'bypass' and g.revoked_at is null and g.expires_at > clock_now()
""",
    "grants_of_principal",
    "grants_of_session",
)
OPEN_BYPASS = named(
    "open_bypass",
    """
with g as (
  insert into grants (id, scope, session, patterns, granted_by, note, expires_at)
  values (%(grant)s, 'bypass', %(session)s, '{}', %(principal)s, %(note)s,
    clock_now() + %(minutes)s * interval '1 minute')
  returning id, session, expires_at
), told as (
  insert into audit (principal, action, subject, detail)
  select %(principal)s, 'gate.bypass', id::text, format('session %%s, until %%s', session, expires_at) from g
)
select id from g
""",
)
# By whoever may: the caller has looked at it. Ended twice, it says nothing the second time and changes nothing.
REVOKE_GRANT = named(
    "revoke_grant",
    """
with g as (
  update grants set revoked_at = clock_now(), revoked_by = %(principal)s
  where id = %(grant)s and revoked_at is null returning id, scope, patterns
), told as (
  insert into audit (principal, action, subject, detail)
  select %(principal)s, 'grant.revoked', id::text, format('scope %%s, patterns %%s', scope, patterns) from g
)
select id from g
""",
    "grants_pkey",
)
