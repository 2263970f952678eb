"""What was understood of a command line: the programs that it would start, each with its words and its surroundings."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Redirect:
    """`operator` as written (`>`, `>>`, `<` …); `target` is a marked word."""

    operator: str
    target: str

    @property
    def writes(self) -> bool:
        return ">" in self.operator and not self.target.isdigit() and self.target != "-"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program as it would be started. Words carry marks (`shared.gate.shell.marks`).

    `via` are the programs that start it, outermost first; `cwd` is where, `.` being the workspace; `stdin` what it is
    fed where that is known, `fed` whether it is fed at all; `more` whether words that nobody knows are added.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    cwd: str = "."
    via: tuple[str, ...] = ()
    stdin: str | None = None
    fed: bool = False
    feeders: tuple[str, ...] = ()
    more: bool = False
    remote: bool = False

    @property
    def program(self) -> str:
        """The bare name; a mark in it is a part that is not known."""
        return self.argv[0].rpartition("/")[2] if self.argv else ""

    @property
    def words(self) -> tuple[str, ...]:
        return self.argv[1:]


@dataclass(slots=True)
class Reading:
    """What a line comes to. `opaque` says, a few words each, what of it could not be understood; `doom` is what it
    would do that no single program of it shows."""

    invocations: list[Invocation] = field(default_factory=list[Invocation])
    opaque: list[str] = field(default_factory=list[str])
    doom: list[str] = field(default_factory=list[str])
    code: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Inline code: the interpreter's name and the text."""

    steps: int = 0

    def unclear(self, why: str) -> None:
        if why not in self.opaque:
            self.opaque.append(why)
