"""Who may see a session: its owner, the whole team, or named people. What one may not see does not exist.

An admin does not see others' private sessions: the role is for running the house, not for reading the post.
"""

from __future__ import annotations

from typing import LiteralString

VISIBLE: LiteralString = """
(s.owner = %(who)s or s.audience = 'team' or (s.audience = 'people' and exists (
  select 1 from session_people sp where sp.session = s.id and sp.principal = %(who)s)))
"""
"""Of a row `s` of sessions, for the principal `who`."""


def only(text: LiteralString, tail: LiteralString = "") -> LiteralString:
    """A statement that ends in a condition, narrowed to what `who` may see, and what comes behind its conditions."""
    return text + " and " + VISIBLE + tail
