"""The gate: one function, one order of decisions.

1. floor: what cannot be undone → refuse
2. a password guessed into sudo → refuse
3. the deny list → refuse
4. files that steer later behaviour → a person, each time; the service's own → refuse
5. what is not understood → ask, whatever was granted but this very call
6. the bypass → allow
7. isolation, the allow lists, grants → allow
8. patterns → ask
9. else → allow

4 and 5 stand before the bypass: of a line that is not understood nobody can say that it is above the floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from shared.gate import met, steering
from shared.gate.paths import path
from shared.gate.policy import Identity, Mode, Policy
from shared.gate.rules import code
from shared.gate.shell.found import Invocation, Reading
from shared.gate.shell.marks import shown
from shared.gate.shell.read import read
from shared.gate.verdict import Decision, Hit, Verdict

_MOST_SHOWN = 40
_MOST_CHARS = 500


def command(text: str, who: Identity | None, policy: Policy | None) -> Verdict:
    """What is decided of a command line for a shell. Never raises; without identity or policy it is refused."""
    if not _known(who) or policy is None:
        return refused("identity.missing", "nobody is known for whom it would run")
    reading, unclear = read(text), list[str]()
    hits = [*met.strict(reading), *met.hidden(reading)]
    if reading.opaque:
        hits += met.rough(text)
    unclear = reading.opaque
    understood = tuple(map(_line, (call for call in reading.invocations if call.argv or call.redirects)))[:_MOST_SHOWN]
    hits += list(met.listed(reading, policy.denied, "deny.listed"))
    hits += list(met.steered(reading))
    soft = tuple(Hit("not_understood", Decision.ASK, why) for why in unclear)
    patterns = tuple(dict.fromkeys(met.patterns(reading)))
    listed = met.all_listed(reading, policy.allowed)
    return settle(text, tuple(dict.fromkeys(hits)), soft, patterns, policy, understood, listed=listed)


def code_of(language: str, text: str, who: Identity | None, policy: Policy | None) -> Verdict:
    """What is decided of a program in this language that would run as it stands."""
    if not _known(who) or policy is None:
        return refused("identity.missing", "nobody is known for whom it would run")
    reading = Reading(code=[(language, text)])
    hard = tuple(dict.fromkeys(met.hidden(reading)))
    patterns = tuple(code.of_code(language, text))
    return settle(text, hard, (), patterns, policy, (f"{language}: {len(text):,} characters",), listed=False)


def paths(written: Sequence[str], who: Identity | None, policy: Policy | None) -> Verdict:
    """What is decided of a call that writes these files of the workspace, each by its path."""
    if not _known(who) or policy is None:
        return refused("identity.missing", "nobody is known for whom it would run")
    hard = list[Hit]()
    for name in written:
        parts = path(name).parts
        if steering.own(parts):
            hard.append(
                Hit("own.configuration", Decision.REFUSE, "it would change the service's own configuration", name[:300])
            )
        elif steering.steers(parts):
            hard.append(met.steers(name, "it writes"))
    if len([hit for hit in hard if hit.decision is Decision.ASK_PERSON]) > 1:
        hard.append(Hit("steering.several", Decision.REFUSE, "it writes several files that steer: one at a time"))
    return settle(
        "\n".join(written), tuple(hard), (), (), policy, tuple(f"writes {name}" for name in written), listed=False
    )


def settle(
    text: str, hard: tuple[Hit, ...], unclear: tuple[Hit, ...], patterns: tuple[Hit, ...], policy: Policy,
    understood: tuple[str, ...], *, listed: bool,
) -> Verdict:  # fmt: skip
    """The table of decisions, in its order."""
    every = (*hard, *unclear, *patterns)
    for kind in ("floor", "sudo", "deny", "own", "steering"):
        for hit in hard:
            if hit.rule.partition(".")[0] == kind and hit.decision is Decision.REFUSE:
                return Verdict(Decision.REFUSE, hit.rule, hit.why, understood, every)
    steers = next((hit for hit in hard if hit.decision is Decision.ASK_PERSON), None)
    if steers is not None:
        return asked(Verdict(Decision.ASK_PERSON, steers.rule, steers.why, understood, every), policy)
    exact = f"exact:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
    if unclear and not policy.isolated and exact not in policy.granted:
        found = Verdict(Decision.ASK, unclear[0].rule, unclear[0].why, understood, every, (exact,))
        return asked(found, policy)
    if not patterns:
        return Verdict(Decision.ALLOW, "no_pattern", "nothing in it needs a person", understood, every)
    if policy.patterns_off:
        return Verdict(Decision.ALLOW, "bypass", "the patterns are switched off for it", understood, every)
    if policy.isolated:
        return Verdict(Decision.ALLOW, "isolated", "it runs where nothing of the host is mounted", understood, every)
    if listed:
        return Verdict(Decision.ALLOW, "allow.listed", "the settings allow it", understood, every)
    rules = tuple(dict.fromkeys(hit.rule for hit in patterns))
    if policy.granted.issuperset(rules) or exact in policy.granted:
        return Verdict(Decision.ALLOW, "granted", "a person has allowed this before", understood, every)
    first = next(hit for hit in patterns if hit.rule not in policy.granted)
    return asked(Verdict(Decision.ASK, first.rule, first.why, understood, every, rules), policy)


def _line(call: Invocation) -> str:
    """One program for a reader: its words, those with blanks between quotes, and where its output goes."""
    words = [f"'{word}'" if not word or any(char in word for char in " \t\n") else word for word in call.argv]
    return shown(" ".join([*words, *(f"{one.operator} {one.target}" for one in call.redirects if one.writes)]))[
        :_MOST_CHARS
    ]


def _known(who: Identity | None) -> bool:
    return who is not None and bool(who.principal) and bool(who.session)


def refused(rule: str, why: str) -> Verdict:
    hit = Hit(rule, Decision.REFUSE, why)
    return Verdict(Decision.REFUSE, rule, why, hits=(hit,))


def asked(verdict: Verdict, policy: Policy) -> Verdict:
    """A call that needs a person, by the mode: refused where nobody is asked."""
    if policy.mode is not Mode.DENY:
        return verdict
    why = f"{verdict.why}, and here nobody is asked"
    return Verdict(Decision.REFUSE, f"mode.deny:{verdict.rule}", why, verdict.understood, verdict.hits)
