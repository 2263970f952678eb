"""Owns the scripts that tests register: which reply comes next for which session.

Positions are counted by session, so one named script can drive many sessions at once. Newest registration wins.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from deploy.rehearsal.loose import Json, is_array, is_object
from deploy.rehearsal.policies import recall, steps, summary, tree
from deploy.rehearsal.policies.view import texts_of
from deploy.rehearsal.reply import Reply, WrongScript, reply_from

TOKEN: Final = re.compile(r"script:([\w.-]+)")
SESSIONS_COUNTED: Final = 20_000


Policy = steps.Steps | tree.Tree | recall.Recall


@dataclass(slots=True)
class Script:
    number: int
    name: str | None
    session: str | None
    contains: str | None
    replies: tuple[Reply, ...]
    repeat: bool
    policy: Policy | None
    # Answers the calls that ask for a summary, and no others; without it a script answers all but those.
    summaries: bool
    positions: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])

    @property
    def label(self) -> str:
        return f"script {self.name}" if self.name else f"script #{self.number}"

    def next(self, session: str | None, request: Json) -> tuple[Reply, str] | None:
        """The next reply for this session, or None when the script has no more."""
        match self.policy:
            case steps.Steps() as policy:
                return steps.reply(policy, request), f"{self.label} steps"
            case tree.Tree() as policy:
                return tree.reply(policy, request), f"{self.label} tree"
            case recall.Recall():
                return recall.reply(request), f"{self.label} recall"
            case None:
                pass
        key = session or ""
        at = self.positions.get(key, 0)
        if at >= len(self.replies) and not self.repeat:
            return None
        self.positions[key] = at + 1
        if len(self.positions) > SESSIONS_COUNTED:
            self.positions.popitem(last=False)
        return self.replies[at % len(self.replies)], f"{self.label} {at + 1}"


KEYS: Final = frozenset(
    (
        "name",
        "summaries",
        "session",
        "match",
        "replies",
        "repeat",
        "policy",
        "steps",
        "tool",
        "input",
        "calls",
        "delay_s",
        "text",
        "gap_s",
        "chunks",
        "width",
        "goal",
    )
)


class ScriptBook:
    """Every registered script."""

    def __init__(self) -> None:
        self._scripts: list[Script] = []
        self._count = 0

    def clear(self) -> None:
        self._scripts.clear()
        self._count = 0

    def add(self, value: Any) -> Script:
        """Register a script given as JSON; a name given again replaces. WrongScript where it is none."""
        if not is_object(value):
            raise WrongScript("script: should be an object")
        given: Json = value
        for key in given:
            if key not in KEYS:
                raise WrongScript(f"script.{key}: unknown; known are {', '.join(sorted(KEYS))}")
        policy = _policy(given)
        replies: Any = given.get("replies") or []
        if policy is None and (not is_array(replies) or not replies):
            raise WrongScript("script.replies: should be a list of at least one reply")
        match: Any = given.get("match")
        self._count += 1
        script = Script(
            number=self._count,
            name=given.get("name"),
            session=given.get("session"),
            contains=None if match is None else str(match["contains"]),
            replies=tuple(reply_from(reply, f"replies.{number}") for number, reply in enumerate(replies)),
            repeat=bool(given.get("repeat", False)),
            policy=policy,
            summaries=bool(given.get("summaries", False)),
        )
        if script.name is not None:
            self._scripts = [
                other for other in self._scripts if (other.name, other.summaries) != (script.name, script.summaries)
            ]
        self._scripts.insert(0, script)
        return script

    def pick(self, session: str | None, request: Json, body: bytes) -> tuple[Reply, str] | None:
        """A script's reply to this request, with a label for the ledger; None leaves it to the policies."""
        if not self._scripts:
            return None
        asked = summary.wanted(request) is not None
        for script in self._candidates(session, request, body, asked):
            found = script.next(session, request)
            if found is not None:
                return found
        return None

    def _candidates(self, session: str | None, request: Json, body: bytes, asked: bool) -> Iterator[Script]:
        """Most particular first: of this session, named in its text, matching its last text, for everybody. A summary
        is `asked` for beside the conversation, whose replies it does not use up."""
        fit = [script for script in self._scripts if script.summaries is asked]
        plain = [script for script in fit if script.name is None]
        yield from (script for script in plain if script.session is not None and script.session == session)
        if b"script:" in body:
            named = {script.name: script for script in fit if script.name is not None}
            yield from (named[name] for name in _names(request) if name in named)
        free = [script for script in plain if script.session is None]
        last = None
        for script in free:
            if script.contains is not None:
                last = "\n".join(_last_user_texts(request)) if last is None else last
                if script.contains in last:
                    yield script
        yield from (script for script in free if script.contains is None)


def _policy(given: Json) -> Policy | None:
    match given.get("policy"):
        case None | "":
            return None
        case "tree":
            return tree.read(given)
        case "recall":
            return recall.Recall()
        case _:
            return steps.read(given)


def _names(request: Json) -> Iterator[str]:
    """Names asked for by user texts, the newest text first."""
    for message in reversed(request["messages"]):
        if message["role"] == "user":
            for text in reversed(list(texts_of(message["content"]))):
                yield from reversed(TOKEN.findall(text))


def _last_user_texts(request: Json) -> list[str]:
    for message in reversed(request["messages"]):
        if message["role"] == "user":
            found = list(texts_of(message["content"]))
            if found:
                return found
    return []
