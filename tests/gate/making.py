"""Command lines made at random from what a shell's language offers, of programs that there are none of."""

from __future__ import annotations

from random import Random

_NAMES = ("alpha", "beta", "gam", "rx", "dx")
_VALUES = ("alpha", "-rf", "/", "x y", "be", "ta", "g", "a/b", "", "r", "--all")
_VARIABLES = ("v", "w", "u")


class Maker:
    """One line after the other; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def line(self) -> str:
        return self._statements(3)

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)

    def _statements(self, depth: int) -> str:
        count = self._random.randint(1, 3)
        parts = [self._statement(depth) for _ in range(count)]
        return "".join(part + self._pick("; ", "\n", " && ", " || ", "; ") for part in parts[:-1]) + parts[-1]

    def _statement(self, depth: int) -> str:
        kind = self._random.randint(0, 19 if depth > 0 else 7)
        if kind < 6:
            return self._command(depth)
        if kind < 8:
            return self._assignment(depth)
        inner = self._statements(depth - 1)
        match kind:
            case 8:
                return f"( {inner} )"
            case 9:
                return "{ " + inner + "; }"
            case 10:
                return f"if {self._pick('true', 'false')}; then {inner}; else {self._command(depth - 1)}; fi"
            case 11:
                return f"for {self._pick(*_VARIABLES)} in {self._word(1)} {self._word(1)}; do {inner}; done"
            case 12:
                return f"case {self._word(1)} in a*) {inner};; *) {self._command(depth - 1)};; esac"
            case 13:
                return f"f{depth}() {{ {inner}; }}; f{depth} {self._word(1)} {self._word(1)}"
            case 14:
                return f"eval {self._quoted(inner)}"
            case 15:
                given = self._pick('"$@"', "$*", "$1", "$2")
                return f"set -- {self._word(1)} {self._word(1)}; {self._pick('alpha', 'beta')} {given}"
            case 16:
                return f"read {self._pick(*_VARIABLES)} <<< {self._word(1)}; {self._command(depth - 1)}"
            case 17:
                held = self._pick('"${a[@]}"', "${a[0]}", "${a[1]}", "${a[@]}")
                return f"a=({self._word(1)} {self._word(1)}); {held} {self._word(1)}"
            case 18:
                return f"{self._command(depth - 1)} | {{ {inner}; }}"
            case _:
                return f"printf -v {self._pick(*_VARIABLES)} %s {self._word(1)}; {self._command(depth - 1)}"

    def _assignment(self, depth: int) -> str:
        return f"{self._pick(*_VARIABLES)}{self._pick('=', '=', '+=')}{self._word(depth)}"

    def _command(self, depth: int) -> str:
        before = f"{self._pick(*_VARIABLES)}={self._word(1)} " if self._random.random() < 0.1 else ""
        words = [self._word(depth) for _ in range(self._random.randint(0, 3))]
        name = self._name() if self._random.random() < 0.7 else self._word(depth)
        comment = f" # {self._pick('alpha', 'it is')}\n" if self._random.random() < 0.05 else ""
        return f"{before}{' '.join([name, *words])}{comment}".rstrip() + ("\n:" if comment else "")

    def _name(self) -> str:
        name = self._pick(*_NAMES)
        match self._random.randint(0, 7):
            case 0:
                return f"{name[:1]}''{name[1:]}"
            case 1:
                return f"\\{name}"
            case 2:
                return f'"{name[:2]}"{name[2:]}'
            case 3:
                return "$'" + "".join(f"\\x{ord(char):02x}" for char in name) + "'"
            case 4:
                return f"{name[:1]}\\\n{name[1:]}"
            case _:
                return name

    def _word(self, depth: int) -> str:
        return "".join(self._piece(depth) for _ in range(self._random.choice((1, 1, 1, 2, 3))))

    def _piece(self, depth: int) -> str:
        value, name = self._pick(*_VALUES), self._pick(*_VARIABLES)
        match self._random.randint(0, 16 if depth > 0 else 12):
            case 0 | 1:
                return self._quoted(value)
            case 2:
                return f'"{value}"'
            case 3:
                return f"${name}"
            case 4:
                return f'"${name}"'
            case 5:
                return (
                    "${"
                    + name
                    + self._pick(":-alpha", ":-", "-be", ":+x", "#?", "%?", "//a/b", ":1", ":0:2", "^^", ",,")
                    + "}"
                )
            case 6:
                return '"${' + name + self._pick(":-x y", ":0:1", "#a", "%%a*", "/a/z") + '}"'
            case 7:
                return "{" + f"{self._pick('a', 'alpha', '-r')},{self._pick('b', '/')}" + "}"
            case 8:
                return self._pick("\\ ", "\\\\", "\\$", "a\\ b", "\\'", '\\"')
            case 9:
                return self._pick("$1", "$@", "$*", "$#x"[:2])
            case 10 | 11 | 12:
                return value.replace(" ", "") or "x"
            case 13:
                return f"$(printf %s {self._word(depth - 1)})"
            case 14:
                return f'"$(echo {self._word(depth - 1)})"'
            case 15:
                return f"`echo {self._pick(*_NAMES)}`"
            case _:
                return f"$(({self._pick('1', '2')}+1))"

    def _quoted(self, text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"
