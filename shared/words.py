"""What a text is found by, and what is asked for: the same cut on both sides, whatever the script and the locale.

Words are runs of letters and digits. Scripts that write without spaces (Chinese, Japanese, Thai; Korean too, whose
particles cling to the word) become pairs of neighbouring characters: pg_trgm sees none of them under the C locale, and
most Chinese words are two characters long, too short for a trigram. A pair stands at the place of its first character;
the last character of a run stands alone, so that one character is found as the beginning of a lexeme.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass

MOST_CHARACTERS = 2_000
MOST_WORDS = 32
VERSION = 1
"""Of the cut: what another one made does not fit what this one asks for, and is made again."""
RECORD = "\x1e"
"""Between the blocks of a message in the text that is searched, so that a place in it tells its block."""
_MOST_LEXEME = 100
_MOST_PLACES = 255  # Postgres keeps no more of one lexeme
_LAST_PLACE = 16_382  # and none above 16,383: places begin anew, so that neighbours stay neighbours in a long text
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(f"([{_DENSE}]+)|([^\\W_{_DENSE}]+)")
_ASKED = re.compile(r'"([^"]*)"|(\S+)')
_TRIGRAMS = re.compile("[A-Za-z0-9]{3}")
_LIKE = re.compile(r"[\\%_]")
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about all am an and any are as at be been but by can could did do does for from had has have he her him
        his how i if in into is it its me my no not of on or our she should so some that the their them then there these
        they this to up us was we were what when where which who why will with would you your""",
    )
)
"""Left out where others were asked for: a question holds them, its answer need not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`whole`: the text of a tsquery for all that was asked for; `opened` for all of it, where each word may go on;
    `some` for any of it. `parts`: LIKE patterns of what may stand inside a longer word, and `beside` the tsquery (or
    None) of what can only be found as words. `marks` are the texts themselves, longest first. `dropped` words were too
    many."""

    whole: str
    opened: str
    some: str
    parts: tuple[str, ...]
    beside: str | None
    marks: tuple[str, ...]
    dropped: int


def fold(text: str) -> str:
    """Wide and narrow, large and small alike."""
    return unicodedata.normalize("NFKC", text).casefold()


def vector(parts: Iterable[tuple[str, str]]) -> str:
    """The text of a tsvector from (weight, folded text) pairs; a weight is a letter from A (counts most) to D."""
    places: dict[str, list[str]] = {}
    at = 0
    for weight, text in parts:
        end = at
        for lexeme, offset in _lexemes(text):
            end = at + offset
            found = places.setdefault(lexeme, [])
            if len(found) < _MOST_PLACES:
                found.append(f"{1 + end % _LAST_PLACE}{weight}")
        at = end + 2  # no phrase reaches from one part into the next
    return " ".join(f"'{lexeme}':{','.join(found)}" for lexeme, found in places.items())


def ask(text: str) -> Asked | None:
    """What the words ask for; None where there is no word in them. Nothing in them is an operator: what stands between
    double quotes, or together without a blank, is looked for together."""
    parts = [(found.group(1) or "", found.group(2) or "") for found in _ASKED.finditer(text[:MOST_CHARACTERS])]
    chunks = [fold(together or alone) for together, alone in parts]
    quoted = {fold(together) for together, _ in parts if together}
    tokens = {chunk: _TOKEN.findall(chunk) for chunk in chunks}
    chosen = _telling([chunk for chunk in tokens if tokens[chunk]], quoted)  # each once, in order
    dropped, chosen = max(0, len(chosen) - MOST_WORDS), chosen[:MOST_WORDS]
    if not chosen:
        return None
    clauses = {chunk: _clause(tokens[chunk]) for chunk in chosen}
    inside = [chunk for chunk in chosen if _is_inside(chunk, tokens[chunk])]
    opened = {chunk: _opened(tokens[chunk]) for chunk in chosen}
    single = dict.fromkeys((clauses[chunk],) if chunk in quoted else _any_of(tokens[chunk]) for chunk in chosen)
    return Asked(
        whole=" & ".join(clauses.values()),
        opened=" & ".join(opened.values()),
        some=" | ".join(dict.fromkeys(one for group in single for one in group)),
        parts=tuple(sorted((f"%{_LIKE.sub(_escaped, chunk)}%" for chunk in inside), key=len, reverse=True)),
        beside=" & ".join(opened[chunk] for chunk in chosen if chunk not in inside) or None,
        marks=tuple(sorted((*chosen, *(w for c in chosen for pair in tokens[c] for w in pair if w)), key=len)[::-1]),
        dropped=dropped,
    )


def _lexemes(folded: str) -> Iterable[tuple[str, int]]:
    at = 0
    for dense, word in _TOKEN.findall(folded):
        if word:
            yield word[:_MOST_LEXEME], at
            at += 1
            continue
        for index in range(len(dense) - 1):
            yield dense[index : index + 2], at + index
        yield dense[-1], at + len(dense) - 1
        at += len(dense)


def _pieces(tokens: Iterable[tuple[str, str]]) -> list[tuple[str, int]]:
    """Lexemes as they are asked for, each with its place: of a run its pairs, of one character what begins with it."""
    pieces: list[tuple[str, int]] = []
    at = 0
    for dense, word in tokens:
        if word:
            pieces.append((f"'{word[:_MOST_LEXEME]}'", at))
            at += 1
        elif len(dense) == 1:
            pieces.append((f"'{dense}':*", at))
            at += 1
        else:
            pieces += [(f"'{dense[index : index + 2]}'", at + index) for index in range(len(dense) - 1)]
            at += len(dense)
    return pieces[:MOST_WORDS]


def _clause(tokens: Iterable[tuple[str, str]], end: str = "") -> str:
    """Neighbours, at the distance at which they stand."""
    pieces = _pieces(tokens)
    text, before = pieces[0]
    for piece, at in pieces[1:]:
        text += f" <{at - before}> {piece}"
        before = at
    return f"({text}{end})"


def _opened(tokens: list[tuple[str, str]]) -> str:
    """As `_clause`, and the last word may go on: endings, also of scripts that have no trigrams everywhere."""
    return _clause(tokens, ":*" if len(tokens[-1][1]) > 1 else "")


def _any_of(tokens: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(piece for piece, _ in _pieces(tokens))


def _telling(chunks: list[str], quoted: Collection[str]) -> list[str]:
    """Without the words that say nothing of the matter, where others are left. In quotes they count."""
    return [chunk for chunk in chunks if chunk in quoted or chunk not in _FUNCTION_WORDS] or chunks


def _is_inside(chunk: str, tokens: Iterable[tuple[str, str]]) -> bool:
    """Whether a trigram index can look for it in every locale; dense scripts are found by their pairs anyway."""
    return bool(_TRIGRAMS.search(chunk)) and chunk.isascii() and not any(dense for dense, _ in tokens)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found.group()}"
