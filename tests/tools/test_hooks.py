"""Hooks of other packages: they deny, they never approve, and a guard that fails denies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import SettingsError
from shared.hooks import Call, Deny, Result
from tests.tools.conftest import Bench
from workers import hooks
from workers.hooks import Hook, Hooks
from workers.tools.context import Came


@pytest.fixture(autouse=True)
def _none_left() -> Generator[None]:
    yield
    hooks.use(Hooks())


def around(*made: Hook, seconds: float = 1.0) -> None:
    hooks.use(Hooks(made, seconds))


def before(work: Callable[[Call], Any], *, guard: bool = False) -> Hook:
    return Hook("house", guard, work, None)


def after(work: Callable[[Call, Result], Any], *, guard: bool = False) -> Hook:
    return Hook("house", guard, None, work)


def wrote(bench: Bench) -> bool:
    return (bench.workspace / "a.txt").exists()


def test_a_hook_denies_a_call_before_it_is_made(bench: Bench) -> None:
    seen: list[Call] = []

    def no(call: Call) -> Deny:
        seen.append(call)
        return Deny("not\non a \x00Friday")

    around(before(no))
    found = bench.run("write_file", path="a.txt", content="x")
    assert (found.text, found.is_error, found.came) == (
        "refused by the hook house: not on a \ufffdFriday", True, Came.STOPPED,
    )  # fmt: skip
    assert not wrote(bench)
    assert seen == [Call("write_file", {"path": "a.txt", "content": "x"}, "session", "turn", 1, 0)]


def test_what_a_hook_changes_in_the_arguments_changes_nothing(bench: Bench) -> None:
    def meddles(call: Call) -> None:
        given: Any = call.arguments
        given["path"] = "other.txt"

    around(before(meddles))
    assert not bench.run("write_file", path="a.txt", content="x").is_error
    assert wrote(bench)


@pytest.mark.parametrize(
    "said", [True, "approve", 1, Deny, {"allow": True}], ids=["true", "word", "one", "class", "map"]
)
def test_a_hook_has_no_word_by_which_it_approves(bench: Bench, said: object) -> None:
    around(before(lambda _: said, guard=True))
    assert bench.error("write_file", path="a.txt", content="x").endswith(
        "it said neither Deny nor None, and it is a guard"
    )
    assert not wrote(bench)


def raises(call: Call) -> None:
    raise SystemExit(f"words of {call.tool} that nobody shall read")


def hangs(call: Call) -> None:
    time.sleep(30 if call else 0)


@pytest.mark.parametrize(("work", "why"), [(raises, "it raised"), (hangs, "it took too long")], ids=["raises", "hangs"])
def test_a_guard_that_fails_denies_and_another_is_passed_over(
    bench: Bench, work: Callable[[Call], None], why: str
) -> None:
    around(before(work, guard=True), seconds=0.1)
    assert bench.error("write_file", path="a.txt", content="x") == (
        f"refused by the hook house: {why}, and it is a guard"
    )
    assert not wrote(bench)
    around(before(work), seconds=0.1)
    assert not bench.run("write_file", path="a.txt", content="x").is_error
    assert wrote(bench)


def test_a_hook_that_hangs_again_and_again_is_not_asked_any_more(bench: Bench) -> None:
    hook = before(hangs, guard=True)
    around(hook, seconds=0.05)
    said = [bench.error("list_files") for _ in range(6)]
    assert said[0].endswith("it took too long, and it is a guard")
    assert said[-1].endswith("it hangs, and it is a guard")
    assert len(hook.hanging) == 4


def test_after_a_call_a_hook_withholds_what_came_of_it(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("sk-ant-" + "a1B2" * 8)
    seen: list[Result] = []

    def looks(call: Call, result: Result) -> Deny | None:
        seen.append(result)
        return Deny("it is not for the model") if call.tool == "read_file" else None

    around(after(looks))
    found = bench.error("read_file", path="a.txt")
    assert found == "the call was made; the hook house withholds what came of it: it is not for the model"
    assert "sk-ant" not in seen[0].text
    assert "a.txt" in bench.text("list_files")


def test_the_first_that_denies_is_the_last_that_is_asked(bench: Bench) -> None:
    asked: list[str] = []

    def says(name: str, answer: Deny | None) -> Hook:
        def work(call: Call) -> Deny | None:
            asked.append(name)
            return answer

        return Hook(name, False, work, None)

    around(says("a", None), says("b", Deny("no")), says("c", None))
    assert bench.error("list_files") == "refused by the hook b: no"
    assert asked == ["a", "b"]


PACKAGE = """
from shared.hooks import Call, Deny


class Quiet:
    guard = True

    def before(self, call: Call) -> Deny | None:
        return Deny("quiet, please") if call.tool == "write_file" else None


NEITHER = object()
"""


def test_a_hook_of_an_installed_package_is_used_where_the_setting_names_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quiet_hooks.py").write_text(PACKAGE)
    info = tmp_path / "quiet_hooks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet-hooks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[nightshift.hooks]\nquiet = quiet_hooks:Quiet\nneither = quiet_hooks:NEITHER\nbroken = quiet_hooks:NOWHERE\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    hooks.use(hooks.load("quiet"))
    assert bench.error("write_file", path="a.txt", content="x") == "refused by the hook quiet: quiet, please"
    assert not bench.run("list_files").is_error
    for name, why in (
        ("missing", "no installed package"),
        ("broken", "cannot be loaded"),
        ("neither", "neither before"),
    ):
        with pytest.raises(SettingsError, match=why):
            hooks.load(f"quiet, {name}")
    hooks.use(hooks.load(""))
    assert not bench.run("write_file", path="a.txt", content="x").is_error
