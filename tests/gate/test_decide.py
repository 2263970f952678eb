"""The order of decisions, each step against the one after it; and that nobody is nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from shared.errors import SettingsError
from shared.gate import bypass, modes, steering
from shared.gate.asking import Code, Command, Question, Writes, judge
from shared.gate.policy import Identity, Mode, Policy
from shared.gate.verdict import Decision
from shared.settings import Settings
from tests.gate.lines import PLAIN, WHO
from tests.ground import ROOT

EVERYTHING = Policy(
    isolated=True, allowed=("rm", "git push", "echo"), granted=frozenset({"delete.recursive"}), patterns_off=True
)
"""All that may stand in for a person at once."""
FLOOR, PASSWORD, STEERS, OWN = "rm -rf /", "echo x | sudo -S id", "echo x > AGENTS.md", "echo x > nightshift.toml"
UNCLEAR, PATTERN = "$X --go", "rm -rf build"


@pytest.mark.parametrize(
    ("command", "policy", "decision", "rule"),
    [
        (FLOOR, EVERYTHING, "refuse", "floor.delete"),
        (PASSWORD, EVERYTHING, "refuse", "sudo.password"),
        (PATTERN, replace(EVERYTHING, denied=("rm -rf *",)), "refuse", "deny.listed"),
        ("git push x y", replace(EVERYTHING, denied=("git push",)), "refuse", "deny.listed"),
        ("env A=1 git push", replace(EVERYTHING, denied=("git push",)), "refuse", "deny.listed"),
        (OWN, EVERYTHING, "refuse", "own.configuration"),
        (STEERS, EVERYTHING, "ask_person", "steering.file"),
        (UNCLEAR, replace(EVERYTHING, isolated=False), "ask", "not_understood"),
        (UNCLEAR, replace(PLAIN, isolated=True), "allow", "isolated"),
        (PATTERN, replace(PLAIN, patterns_off=True), "allow", "bypass"),
        (PATTERN, replace(PLAIN, isolated=True), "allow", "isolated"),
        (PATTERN, replace(PLAIN, allowed=("rm -rf build",)), "allow", "allow.listed"),
        (f"{PATTERN}; git push -f", replace(PLAIN, allowed=("rm -rf build",)), "ask", "delete.recursive"),
        (PATTERN, replace(PLAIN, granted=frozenset({"delete.recursive"})), "allow", "granted"),
        (f"{PATTERN}; git push -f", replace(PLAIN, granted=frozenset({"delete.recursive"})), "ask", "git.force_push"),
        (PATTERN, replace(PLAIN, granted=frozenset({"git.force_push"})), "ask", "delete.recursive"),
        (PATTERN, PLAIN, "ask", "delete.recursive"),
        (PATTERN, replace(PLAIN, mode=Mode.PARK), "ask", "delete.recursive"),
        (PATTERN, replace(PLAIN, mode=Mode.DENY), "refuse", "mode.deny:delete.recursive"),
        (STEERS, replace(EVERYTHING, mode=Mode.DENY), "refuse", "mode.deny:steering.file"),
        ("ls", replace(PLAIN, mode=Mode.DENY), "allow", "no_pattern"),
        ("", PLAIN, "allow", "no_pattern"),
    ],
)
def test_the_order_of_decisions(command: str, policy: Policy, decision: str, rule: str) -> None:
    said = judge(Command(command), WHO, policy)
    assert (said.decision, said.rule) == (decision, rule), said


def test_what_is_not_understood_is_granted_by_its_very_text_alone() -> None:
    (exact,) = judge(Command(UNCLEAR), WHO, PLAIN).patterns
    granted = replace(PLAIN, granted=frozenset({exact}))
    assert judge(Command(UNCLEAR), WHO, granted).decision is Decision.ALLOW
    assert judge(Command(f"{UNCLEAR} --now"), WHO, granted).decision is Decision.ASK


@pytest.mark.parametrize("question", [Command("ls"), Code("python", "print(1)"), Writes(("a.txt",))], ids=str)
@pytest.mark.parametrize(
    ("who", "policy"),
    [(None, PLAIN), (WHO, None), (Identity("", "s"), PLAIN), (Identity("p", ""), PLAIN), (None, EVERYTHING)],
    ids=["nobody", "no policy", "no principal", "no session", "nobody, everything"],
)
def test_without_identity_session_or_policy_the_answer_is_no(
    question: Question, who: Identity | None, policy: Policy | None
) -> None:
    said = judge(question, who, policy)
    assert (said.decision, said.rule) == (Decision.REFUSE, "identity.missing")


@pytest.mark.parametrize(
    ("question", "decision"),
    [
        (Writes(("src/a.py",)), "allow"),
        (Writes(("AGENTS.md",)), "ask_person"),
        (Writes(("docs/Agents.MD",)), "ask_person"),
        (Writes(("\uff21GENTS.md",)), "ask_person"),
        (Writes((".git/hooks/pre-commit",)), "ask_person"),
        (Writes(("a/../CLAUDE.md",)), "ask_person"),
        (Writes(("agents/reviewer.toml",)), "ask_person"),
        (Writes(("skills/x/run.py",)), "ask_person"),
        (Writes(("AGENTS.md", "CLAUDE.md")), "refuse"),
        (Writes(("nightshift.toml",)), "refuse"),
        (Writes((".NIGHTSHIFT/stack.json",)), "refuse"),
        (Code("python", "print(read_file('AGENTS.md'))"), "allow"),
        (Code("python", "print(1 + 1)"), "allow"),
        (Code("python", "open('AGENTS.md', 'w').write('x')"), "ask_person"),
        (Code("python", "open('nightshift.toml', 'a')"), "refuse"),
        (Code("python", "import os; os.system('rm -rf /')"), "refuse"),
        (Code("python", "import os\nos.environ['NIGHTSHIFT_GATE_BYPASS'] = '1'"), "ask"),
    ],
    ids=str,
)
def test_files_and_code(question: Question, decision: str) -> None:
    for policy in (PLAIN, replace(PLAIN, patterns_off=True)):
        said = judge(question, WHO, policy).decision
        assert said == decision or (policy.patterns_off and decision == "ask" and said is Decision.ALLOW), policy


def test_the_bypass_is_what_the_process_was_started_with_and_nothing_later() -> None:
    before = bypass.LAUNCHED_WITH_BYPASS
    code = (
        "import os; from shared.gate import bypass; first = bypass.LAUNCHED_WITH_BYPASS\n"
        "os.environ['NIGHTSHIFT_GATE_BYPASS'] = '1'; os.putenv('NIGHTSHIFT_GATE_BYPASS', '1')\n"
        "print(first, bypass.LAUNCHED_WITH_BYPASS)"
    )
    for given, told in ((None, "False False"), ("1", "True True"), ("yes", "False False")):
        env = {"PATH": os.environ["PATH"]} | ({} if given is None else {bypass.VARIABLE: given})
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == told
    assert before is False


def test_modes_are_read_by_profile_and_a_wrong_one_is_named() -> None:
    settings = Settings(gate_modes="careful=deny, *=ask", gate_deny="git push, terraform  apply", gate_allow="rm *")
    assert modes.policy(settings, "careful", is_job=False).mode is Mode.DENY
    assert modes.policy(settings, "other", is_job=False).mode is Mode.ASK
    assert modes.policy(settings, "other", is_job=True).mode is Mode.PARK
    assert modes.policy(settings, "other", is_job=True).denied == ("git push", "terraform apply")
    for wrong in ("careful", "careful=yes", "=deny", "a=ask,a=deny", "careful=allow"):
        with pytest.raises(SettingsError, match="NIGHTSHIFT_GATE_MODES"):
            modes.parse(wrong)


def test_what_a_sandbox_mounts_read_only_is_the_outermost_that_steers() -> None:
    names = [("a.py",), (".git", "hooks", "pre-push"), (".git", "hooks"), ("docs", "AGENTS.md"), (".nightshift", "x")]
    assert steering.mounts(names) == [(".git", "hooks"), ("docs", "AGENTS.md"), (".nightshift", "x")]


def test_hostile_text_is_answered_in_bounded_time_and_never_raises() -> None:
    """No clock is read here: a reader that took exponential time would meet the time-out of the tests."""
    doubled = "x=aaaaaaaaaa; " + "x=$x$x; " * 200 + "$x"
    for text in (
        *("(" * 5_000, "$(" * 3_000, "{a,b}" * 200, "echo " + "{" * 500 + "a" + ",b}" * 500, doubled, "`" * 999),
        *("for a in 1 2 3 4; do " * 9 + "ls" + "; done" * 9, "f(){ f; f; f; }; f", "a" * 19_000, "*" * 19_000),
        *("<<A " * 8 + "\nA" * 8, "if " * 3_000, "'" * 9_999, "eval " * 3_000 + "ls", "bash -c " * 500, "\ud800", "\0"),
        *("a=(" * 3_000, "x=" + "{1..9999}" * 5, "rm -rf " + "*/" * 5_000, "cat <<A\n" + "$x" * 5_000 + "\nA"),
        *("alias a=a; a", "; " * 9_000, "?*" * 9_000, "\\" * 9_999),
    ):
        assert judge(Command(text), WHO, PLAIN).decision in Decision
