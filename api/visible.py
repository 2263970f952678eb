"""Who may see a session: its owner, the whole team, or named people. What one may not see does not exist.

An admin does not see others' private sessions: the role is for running the house, not for reading the post.
"""

from __future__ import annotations

from typing import LiteralString

_BEFORE: LiteralString = "(s.owner = "
_BETWEEN: LiteralString = """ or s.audience = 'team' or (s.audience = 'people' and exists (
  select 1 from session_people sp where sp.session = s.id and sp.principal = """
_WHO: LiteralString = "%(who)s"


def seen_by(who: LiteralString) -> LiteralString:
    """The condition that a row `s` of sessions is visible to the principal that the expression `who` gives."""
    return _BEFORE + who + _BETWEEN + who + ")))"


VISIBLE = seen_by(_WHO)


def only(text: LiteralString, tail: LiteralString = "", who: LiteralString = _WHO) -> LiteralString:
    """A statement that ends in a condition, narrowed to what `who` may see, and what comes behind its conditions."""
    return text + " and " + seen_by(who) + tail
