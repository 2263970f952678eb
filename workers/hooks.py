"""Hooks of other packages, run around a tool call: each in its time, each failure its own. A guard's failure denies."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any

import structlog

from shared.errors import SettingsError
from shared.hooks import GROUP, Call, Deny, Result
from shared.text import bounded, clean_text
from workers.tools.context import Came, ToolResult

MOST_S = 2.0
_MOST_HANGING = 4
_MOST_WHY = 300
_log = structlog.stdlib.get_logger(__name__)
Before = Callable[[Call], Any]
After = Callable[[Call, Result], Any]


class Failed(Exception):
    """It raised, took too long, or said what is no word of a hook."""


@dataclass(slots=True)
class Hook:
    """One that was loaded. `hanging` are its threads that never came back: once there are four, it is not asked."""

    name: str
    guard: bool
    before: Before | None
    after: After | None
    hanging: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def ask(self, work: Callable[[], Any], seconds: float) -> Deny | None:
        """Raises Failed."""
        self.hanging = [thread for thread in self.hanging if thread.is_alive()]
        if len(self.hanging) >= _MOST_HANGING:
            raise Failed("it hangs")
        said: list[Any] = []
        thread = threading.Thread(target=_into, args=(work, said), name=f"hook-{self.name}", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self.hanging.append(thread)
            raise Failed("it took too long")
        if not said or not (said[0] is None or isinstance(said[0], Deny)):
            raise Failed("it raised" if not said else "it said neither Deny nor None")
        return said[0]


def _into(work: Callable[[], Any], said: list[Any]) -> None:
    try:
        said.append(work())
    except BaseException as error:  # noqa: BLE001 - code of others: whatever it raises is its failure, and its words stay here
        _log.warning("hook.raised", error=type(error).__name__)


class Hooks:
    """Those of this process, in the order of the setting. The first that denies is the last that is asked."""

    def __init__(self, hooks: Iterable[Hook] = (), seconds: float = MOST_S) -> None:
        self._hooks = tuple(hooks)
        self._seconds = seconds

    def before(self, call: Call) -> ToolResult | None:
        """What the model is told instead of a result, or None: the call may be made as far as hooks go."""
        for hook in self._hooks:
            before = hook.before
            if before is not None:
                why = self._denied(hook, lambda before=before: before(_copy(call)))
                if why is not None:
                    return ToolResult(f"refused by the hook {hook.name}: {why}", is_error=True, came=Came.STOPPED)
        return None

    def after(self, call: Call, result: ToolResult) -> ToolResult:
        """The result, or that it was made and is withheld."""
        for hook in self._hooks:
            after = hook.after
            if after is not None:
                seen = Result(result.text, result.is_error)
                why = self._denied(hook, lambda after=after, seen=seen: after(_copy(call), seen))
                if why is not None:
                    words = f"the call was made; the hook {hook.name} withholds what came of it: {why}"
                    return ToolResult(words, is_error=True, came=result.came)
        return result

    def _denied(self, hook: Hook, work: Callable[[], Any]) -> str | None:
        try:
            said = hook.ask(work, self._seconds)
        except Failed as failed:
            _log.warning("hook.failed", hook=hook.name, guard=hook.guard, why=str(failed))
            return f"{failed}, and it is a guard" if hook.guard else None
        return None if said is None else bounded(" ".join(clean_text(str(said.why)).split()), _MOST_WHY)


_standing: list[Hooks] = [Hooks()]


def use(hooks: Hooks) -> None:
    """From here on these stand around each tool call of this process: said once, before its first turn."""
    _standing[0] = hooks


def standing() -> Hooks:
    return _standing[0]


def _copy(call: Call) -> Call:
    return replace(call, arguments=copy.deepcopy(dict(call.arguments)))


def load(setting: str) -> Hooks:
    """The hooks that `hooks` names, with commas between. Raises SettingsError for one that is not there or is none: a
    guard that was asked for and is missing must stop the start."""
    names = [word.strip() for word in setting.split(",") if word.strip()]
    found = {entry.name: entry for entry in metadata.entry_points(group=GROUP)} if names else {}
    return Hooks([_loaded(name, found.get(name)) for name in dict.fromkeys(names)])


def _loaded(name: str, entry: metadata.EntryPoint | None) -> Hook:
    if entry is None:
        raise SettingsError(f"NIGHTSHIFT_HOOKS: no installed package offers the hook '{name}' (group {GROUP})")
    try:
        made = entry.load()
        hook: Any = made() if isinstance(made, type) else made
    except Exception as error:
        raise SettingsError(f"NIGHTSHIFT_HOOKS: the hook '{name}' cannot be loaded ({type(error).__name__})") from error
    before, after = getattr(hook, "before", None), getattr(hook, "after", None)
    if not callable(before) and not callable(after):
        raise SettingsError(f"NIGHTSHIFT_HOOKS: the hook '{name}' has neither before nor after")
    guard = getattr(hook, "guard", False) is True
    return Hook(name, guard, before if callable(before) else None, after if callable(after) else None)
