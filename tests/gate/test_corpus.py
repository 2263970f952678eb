"""The corpus: what hides a command is decided as the bare command is, and ordinary work is not asked about."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

from shared.gate import decide
from shared.gate.policy import Mode, Policy
from shared.gate.verdict import Decision, Verdict
from tests.gate.lines import PLAIN, WHO, evasions, ordinary

ALL = evasions()
BYPASS = replace(PLAIN, patterns_off=True)
ISOLATED = replace(PLAIN, isolated=True)


@cache
def command(text: str, policy: Policy = PLAIN) -> Verdict:
    return decide.command(text, WHO, policy)


def test_the_corpus_is_as_large_as_was_asked_for() -> None:
    assert len({one.command for one in ALL}) == len(ALL) >= 300
    assert len({one.kind for one in ALL}) >= 20
    assert len(set(ordinary())) >= 500


def test_every_evasion_is_decided_as_it_was_expected() -> None:
    """And the share of each decision by kind, as a table."""
    table: dict[str, Counter[Decision]] = {}
    wrong: list[tuple[str, str, str, str]] = []
    for one in ALL:
        said = command(one.command)
        table.setdefault(one.kind, Counter())[said.decision] += 1
        if said.decision is not one.expected:
            wrong.append((one.kind, one.command, one.expected, f"{said.decision}: {said.rule}"))
    for kind, counted in table.items():
        print(f"{kind:32}" + "".join(f"{decision}: {counted[decision]:4}  " for decision in Decision))
    assert wrong == []


def test_no_command_of_a_dangerous_kind_is_allowed_silently() -> None:
    assert [one.command for one in ALL if command(one.command).decision is Decision.ALLOW] == []


def test_with_the_bypass_on_the_floor_and_what_steers_stand() -> None:
    """And so does what is not understood: of it nobody can say that it is above the floor."""
    for one in ALL:
        said = command(one.command, BYPASS)
        if one.expected in (Decision.REFUSE, Decision.ASK_PERSON):
            assert said.decision is one.expected, one
        elif said.decision is not Decision.ALLOW:
            assert (said.decision, said.rule) == (Decision.ASK, "not_understood"), one


def test_where_nothing_of_the_host_is_mounted_the_floor_and_what_steers_stand() -> None:
    for one in ALL[::3]:
        said = command(one.command, ISOLATED)
        expected = Decision.ALLOW if one.expected is Decision.ASK else one.expected
        assert said.decision is expected, one


def test_where_nobody_is_asked_what_would_be_asked_is_refused() -> None:
    deny = replace(PLAIN, mode=Mode.DENY)
    assert {command(one.command, deny).decision for one in ALL[::7]} == {Decision.REFUSE}


def test_at_most_one_in_ten_ordinary_commands_is_asked_about() -> None:
    said = {line: command(line) for line in ordinary()}
    asked = {line: verdict.rule for line, verdict in said.items() if verdict.decision is not Decision.ALLOW}
    for line, rule in asked.items():
        print(f"{rule:24} {line}")
    print(f"{len(asked)} of {len(said)} asked")
    assert len(asked) <= len(said) / 10
    assert Decision.REFUSE not in {verdict.decision for verdict in said.values()}
