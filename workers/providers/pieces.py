"""Owns text that arrives in pieces. Invariant: what `add` and `close` return, joined, is `text()`, and holds no known
key, also where one came in two pieces."""

from __future__ import annotations

from shared.redact import REDACTOR, Flow
from shared.text import clean_text


class Pieces:
    """One block's text. A piece that ends inside a surrogate pair is kept back by one code unit until the next."""

    __slots__ = ("_flow", "_held", "_raw", "_shown")

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._shown: list[str] = []
        self._held = ""
        self._flow = Flow(REDACTOR)

    def add(self, piece: str) -> str:
        """What may be shown now, fit to be stored."""
        if self._held:
            piece = self._held + piece
            self._held = ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._held = piece[-1]
            piece = piece[:-1]
        return self._keep(_paired(piece))

    def close(self) -> str:
        held, self._held = self._held, ""
        shown = self._keep(held)
        rest = self._flow.close()
        if rest:
            self._shown.append(rest)
        return shown + rest

    def raw(self) -> str:
        """As it came, halves of pairs joined, nothing cleaned and nothing taken out."""
        return "".join(self._raw)

    def text(self) -> str:
        return "".join(self._shown)

    def _keep(self, piece: str) -> str:
        if not piece:
            return ""
        shown = piece if piece.isascii() and "\0" not in piece else clean_text(piece)
        self._raw.append(piece)
        shown = self._flow.add(shown)
        self._shown.append(shown)
        return shown


def _paired(piece: str) -> str:
    """Two halves of a pair as the one character that they are; lone halves stay as they were."""
    if piece.isascii():
        return piece
    return piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
