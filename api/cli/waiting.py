"""Owns what a person is told of a turn that waits, and with which command it goes on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from api.cli import live, safe, screen

PERSON = frozenset({"approval", "clarify"})
"""What a turn is parked on while a person has to act."""
WIDTH = 2_000
"""Characters of a call that is to be decided on: what is hidden behind an ellipsis would be allowed unread."""
Row = Mapping[str, Any]


def on_person(turn: Row) -> bool:
    """Whether a person has to act before it goes on: on what it asks itself, or on what a child below it asks."""
    asked_below = turn.get("parked_on") == "children" and bool(requests(turn) or questions(turn))
    return turn.get("status") == "parked" and (turn.get("parked_on") in PERSON or asked_below)


def requests(turn: Row) -> list[Row]:
    """The calls that wait for a decision, in the order in which they were made."""
    return list(cast("Sequence[Row]", _waiting(turn).get("approvals") or ()))


def on_money(turn: Row) -> bool:
    return turn.get("status") == "parked" and turn.get("parked_on") == "money"


def lacking(turn: Row) -> list[Row]:
    """The caps that have no room for its next call."""
    return list(cast("Sequence[Row]", _waiting(turn).get("money") or ()))


def lacking_shared(turn: Row) -> list[Row]:
    """Those of them that many turns share."""
    return list(cast("Sequence[Row]", _waiting(turn).get("budgets") or ()))


def questions(turn: Row) -> list[Row]:
    return list(cast("Sequence[Row]", _waiting(turn).get("questions") or ()))


def wanted(request: Row) -> str:
    """One request: the call, and who may decide where that is not every approver."""
    who = f" · an {request['role']} decides" if request.get("role") == "admin" else ""
    eyes = " · somebody other than who asked" if request.get("four_eyes") else ""
    why = f" · {safe.line(request['why'], WIDTH)}" if request.get("why") else ""
    return f"{live.call(request, WIDTH)}{who}{eyes}{why}"


def told(turn: Row) -> list[str]:
    """`waiting for … since …`, then for each thing that is asked what it is and the command that answers it."""
    waiting = _waiting(turn)
    since = f" since {screen.when(waiting['since'])}" if waiting.get("since") else ""
    until = f", at most until {screen.when(waiting['until'])}" if waiting.get("until") else ""
    what = live.WAITS_FOR.get(str(turn.get("parked_on")), turn.get("parked_on"))
    lines = [f"turn {turn['id']} is waiting for {what}{since}{until}"]
    for request in requests(turn):
        lines.append(f"? {wanted(request)}")
        lines.append(f"  nightshift approve {request['id']} (or deny)")
    for question in questions(turn):
        lines.append(f"? {safe.line(question.get('text'), WIDTH)}")
        lines.append(f"  nightshift steer {question.get('turn_id') or turn['id']} ANSWER")
    for cap in lacking(turn):
        lines.append(f"$ {_short(cap)}")
        lines.append(f"  nightshift cap {cap.get('cap')} {cap.get('id')} {cap.get('enough_usd')}")
    for cap in lacking_shared(turn):
        lines.append(f"$ {_short(cap)}")
        words = (cap.get("scope"), cap.get("subject"), cap.get("period"), cap.get("enough_usd"))
        lines.append(f"  nightshift budgets set {' '.join(map(str, words))} (an admin)")
    return lines


def _short(cap: Row) -> str:
    """One cap: how far it is used, and what the next call may cost."""
    promised = f", {screen.money(cap['promised_usd'])} promised to children" if cap.get("promised_usd") else ""
    if cap.get("drawn_usd"):
        promised = f", {screen.money(cap['drawn_usd'])} drawn by turns that run"
    of = "" if cap.get("period") in (None, "ever") else f" of {cap.get('window')}"
    whose = cap.get("cap") or cap.get("scope")
    return (
        f"the {whose}'s cap{of} of {screen.money(cap.get('cap_usd'))} has {screen.money(cap.get('left_usd'))} left"
        f" ({screen.money(cap.get('spent_usd'))} spent{promised}) and its next call may cost"
        f" {screen.money(cap.get('needs_usd'))}"
    )


def _waiting(turn: Row) -> Row:
    return cast("Row", turn.get("waiting") or {})
