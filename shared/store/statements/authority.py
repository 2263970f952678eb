"""On whose behalf a turn runs. A reader: nothing here locks or writes."""

from __future__ import annotations

from shared.store.statements import named

# The person whose word alone a turn carries, and the job it is part of. Somebody else who spoke in it could have asked
# for what the first one's keys allow.
AUTHORITY = named(
    "authority",
    """
select t.job, case when p.kind = 'person' and t.contributors <@ array[t.requested_by] then t.requested_by end as person
from turns t join principals p on p.id = t.requested_by where t.id = %(turn)s
""",
    "turns_pkey",
)
