"""What is decided of a call of a tool server's tool.

Nobody here knows what it reads or writes, and what its server says of that is not believed: a person is asked, unless
the operator allows the tool in this profile, or a person with the role has. What its arguments say is held against the
floor, the deny list and the files that steer, whoever allows it: each text as a path, as a command line, and, under a
name such as `command`, as what a shell would be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from shared.gate import decide, met, steering
from shared.gate.paths import path
from shared.gate.policy import Identity, Policy
from shared.gate.shell.read import read
from shared.gate.verdict import Decision, Hit, Verdict

_RUNS = frozenset({"bash", "cmd", "code", "command", "commands", "exec", "python", "script", "sh", "shell"})
"""What a text is called that is run: it is decided of as of a command."""
_MOST_TEXTS, _MOST_CHARS = 400, 20_000
_MOST_PATH = 500


def served(
    tool: str, arguments: Mapping[str, object], who: Identity | None, policy: Policy | None, *, allowed: bool
) -> Verdict:
    """`tool` as the model calls it. Never raises; without identity or policy it is refused."""
    if who is None or not who.principal or not who.session or policy is None:
        return decide.refused("identity.missing", "nobody is known for whom it would run")
    hits, clear = list[Hit](), True
    for at, (key, text) in enumerate(_texts(arguments)):
        if at >= _MOST_TEXTS or len(text) > _MOST_CHARS:
            clear = False
            break
        hits += _of_text(key, text, who, policy)
    hits = list(dict.fromkeys(hits))
    understood = (f"the tool server's {tool}",)
    refused = next((hit for hit in hits if hit.decision is Decision.REFUSE), None)
    if refused is not None:
        return Verdict(Decision.REFUSE, refused.rule, refused.why, understood, tuple(hits))
    each_time = next((hit for hit in hits if hit.decision is Decision.ASK_PERSON), None)
    if each_time is not None:
        found = Verdict(Decision.ASK_PERSON, each_time.rule, each_time.why, understood, tuple(hits))
        return decide.asked(found, policy)
    soft = next((hit for hit in hits if hit.decision is Decision.ASK), None)
    own = f"tool:{tool}"
    if not clear:
        soft, own = Hit("served.long", Decision.ASK, "its arguments are too long to be looked through"), ""
    if soft is None and (allowed or own in policy.granted):
        rule, why = ("served.allowed", "the operator allows it") if allowed else ("granted", "a person has allowed it")
        return Verdict(Decision.ALLOW, rule, why, understood)
    soft = soft or Hit("served", Decision.ASK, "it is a tool server's: what it reads and writes is not known here")
    patterns = (own,) if soft.rule == "served" else ()
    return decide.asked(Verdict(Decision.ASK, soft.rule, soft.why, understood, (*hits, soft), patterns), policy)


def _of_text(key: str, text: str, who: Identity, policy: Policy) -> Iterator[Hit]:
    if not text.strip():
        return
    if key.casefold() in _RUNS:
        verdict = decide.command(text, who, policy)
        if verdict.decision is not Decision.ALLOW:
            yield Hit(verdict.rule, verdict.decision, verdict.why, text[:300])
        return
    reading = read(text)
    yield from met.strict(reading)
    yield from met.listed(reading, policy.denied, "deny.listed")
    yield from (hit for hit in met.steered(reading) if hit.decision is not Decision.ASK)
    if len(text) <= _MOST_PATH and "\n" not in text:
        parts = path(text.removeprefix("file://")).parts
        if steering.own(parts):
            yield met.own(text)
        elif steering.steers(parts):
            yield met.steers(text, "it names")


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in it, names of fields too, each with the name that it stands under."""
    left: list[tuple[str, object]] = [(key, value)]
    while left:
        name, one = left.pop()
        if isinstance(one, str):
            yield name, one
        elif isinstance(one, Mapping):
            for inner, each in cast("Mapping[str, object]", one).items():
                yield "", inner
                left.append((inner, each))
        elif isinstance(one, list | tuple):
            left += [(name, each) for each in cast("list[object]", one)]
