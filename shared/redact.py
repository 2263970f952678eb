"""Keys taken out of a text before it is stored, sent or shown: those that are known, and what has the shape of one.

What comes out never holds a known key as it stands, in base64, in hex, percent-encoded, or escaped as in JSON. If this
cannot be done, the whole text is replaced: a text that nobody could look through is not passed on.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import re2

LEAST_CHARS = 8
"""A shorter key would be found in ordinary words, and takes seconds to guess."""
WITHHELD = "[this text was withheld: it could not be looked through for secrets]"
TAKEN_OUT = "[a secret was here]"
_MOST_CHARS = 64_000_000
_RE2: Any = re2  # it ships no types

_SHAPES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "a private key",
        ("PRIVATE KEY-----",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]{1,20000}?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    ),
    ("an API key", ("sk-",), r"\bsk-(?:ant-|proj-|or-|svcacct-|admin-)?[A-Za-z0-9_-]{20,400}"),
    ("a Stripe key", ("_live_", "_test_"), r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,200}"),
    ("a GitHub token", ("gh", "github_pat_"), r"\b(?:gh[opusr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
    ("a GitLab token", ("glpat-", "glptt-", "gldt-"), r"\bgl(?:pat|ptt|dt)-[A-Za-z0-9_-]{16,100}"),
    ("an AWS key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    (
        "an AWS secret",
        ("aws_secret", "AWS_SECRET", "SecretAccessKey"),
        r"(?i:aws_secret_access_key|SecretAccessKey)[\"' ]{0,3}[:=][\"' ]{0,3}[A-Za-z0-9/+=]{40}",
    ),
    ("a Google key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Google token", ("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,500}"),
    ("a Slack token", ("xox", "xapp-"), r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,300}"),
    ("a Slack hook", ("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,200}"),
    ("an npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{30,100}"),
    ("a PyPI token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{40,400}"),
    ("a Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,100}"),
    ("a SendGrid key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,100}"),
    ("a Twilio key", ("SK",), r"\bSK[0-9a-f]{32}\b"),
    ("a Telegram token", (":AA",), r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,40}"),
    ("a Docker token", ("dckr_",), r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,100}"),
    ("a DigitalOcean token", ("do",), r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("an age key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}"),
    ("a signed token", ("eyJ",), r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,2000}"),
    ("a bearer token", ("earer ",), r"\b[Bb]earer [A-Za-z0-9._~+/-]{20,4000}=*"),
    ("a password in an address", ("://",), r"(?<=://)[^\s/:@'\"<>]{0,100}:[^\s/@'\"<>]{3,200}(?=@)"),
)  # fmt: skip
_COMPILED = tuple((what, marks, re.compile(pattern)) for what, marks, pattern in _SHAPES)
"""Each with words of which one must be there: where none is, which is the rule, nothing is searched. Every repetition
is bounded."""


_MARKS = tuple(dict.fromkeys(mark for _, marks, _ in _SHAPES for mark in marks))


@dataclass(frozen=True, slots=True)
class Redacted:
    """`found` is how many places were taken out."""

    text: str
    found: int


class Redactor:
    """Owns what is known. It may learn at any time, from any thread."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._first: Any = None
        self._beginnings = _Beginnings(())
        self.learn(known)

    def learn(self, values: Iterable[str]) -> None:
        """From here on these are taken out too; a private key or a key file by each of its longer lines."""
        with self._lock:
            fresh = {part for value in values for part in _parts(value)} - self._known
            if not fresh:
                return
            self._known |= fresh
            forms = sorted(
                {form for value in self._known for form in _forms(value)}, key=lambda form: (-len(form), form)
            )
            self._first = _linear(forms)
            self._pattern = re.compile("|".join(map(re.escape, forms)))
            self._beginnings = _Beginnings(forms)

    def without_known(self, text: str) -> str:
        """The text without the keys that are known; what has no more than the shape of one stays: this is for what the
        model writes, which may be about keys. Never raises, as `clean`."""
        try:
            pattern = self._pattern
            return text if pattern is None or not self._may_hold_one(text) else pattern.sub(TAKEN_OUT, text)
        except Exception:  # noqa: BLE001 - as in `clean`
            return WITHHELD

    def safe_up_to(self, text: str) -> int:
        """Where a text that goes on may be cut: no known key begins before it and ends behind it, whatever follows."""
        pattern = self._pattern
        if pattern is None:
            return len(text)
        cut = self._beginnings.first_open(text)
        if cut < len(text):
            for match in pattern.finditer(text):
                if match.start() >= cut:
                    break
                cut = max(cut, match.end())
        return cut

    def clean(self, text: str) -> Redacted:
        """Never raises: what cannot be looked through is withheld as a whole."""
        try:
            return self._cleaned(text)
        except Exception:  # noqa: BLE001 - whatever went wrong, the text must not get past this point
            return Redacted(WITHHELD, 1)

    def _may_hold_one(self, text: str) -> bool:
        """The rule is that it does not: the engine that can also replace takes a hundred times as long to say so."""
        if self._first is None:
            return True
        try:
            return self._first.search(text) is not None
        except UnicodeEncodeError:  # half a character, which only the other engine takes
            return True

    def _cleaned(self, text: str) -> Redacted:
        if len(text) > _MOST_CHARS:
            return Redacted(WITHHELD, 1)
        found = 0
        if self._pattern is not None and self._may_hold_one(text):
            text, found = self._pattern.subn(TAKEN_OUT, text)
        for mark in _MARKS:  # one plain loop: this is looked at for every result, and the rule is that none is there
            if mark in text:
                break
        else:
            return Redacted(text, found)
        for what, marks, pattern in _COMPILED:
            if any(mark in text for mark in marks):
                text, more = pattern.subn(f"[{what} was here]", text)
                found += more
        return Redacted(text, found)


class _Beginnings:
    """Whether the end of a text is the beginning of a form that has not come whole."""

    def __init__(self, forms: Sequence[str]) -> None:
        self._sorted = sorted(forms)
        self._longest = max(map(len, forms), default=0)
        self._first = frozenset(form[:2] for form in forms)

    def first_open(self, text: str) -> int:
        """Of the places from which on the text is such a beginning the first; its length where there is none."""
        length = len(text)
        for at in range(max(0, length - self._longest + 1), length - 1):
            if text[at : at + 2] in self._first and self._open(text[at:]):
                return at
        return length - 1 if length and self._open(text[-1]) else length

    def _open(self, tail: str) -> bool:
        after = bisect_right(self._sorted, tail)  # what the tail begins stands right behind it; the tail itself before
        return after < len(self._sorted) and self._sorted[after].startswith(tail)


class Flow:
    """Text that comes in pieces: what `add` and `close` give, joined, is the whole without the keys that are known.
    What may be the beginning of one is kept back until that is seen."""

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def add(self, piece: str) -> str:
        text = self._held + piece
        try:
            cut = self._redactor.safe_up_to(text)
        except Exception:  # noqa: BLE001 - as in `clean`: nothing gets past this point that was not looked at
            self._held = ""
            return WITHHELD
        self._held = text[cut:]
        return self._redactor.without_known(text[:cut]) if cut else ""

    def close(self) -> str:
        held, self._held = self._held, ""
        return self._redactor.without_known(held) if held else ""


def _linear(forms: Sequence[str]) -> Any:
    """A look for any of them in time that grows with the text alone; None where there are too many for that."""
    options = _RE2.Options()
    options.max_mem = 256 << 20
    options.log_errors = False
    try:
        return _RE2.compile("|".join(map(_RE2.escape, forms)), options)
    except (_RE2.error, UnicodeEncodeError):
        return None


def _parts(value: str) -> list[str]:
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines()]
    wanted = [whole] if len(lines) <= 1 else [line for line in lines if not line.startswith("-----")]
    return [part for part in wanted if len(part) >= LEAST_CHARS]


def _forms(value: str) -> set[str]:
    """The value as it may stand in a text. In base64 it may begin at any of three places of a group, of which the
    characters at its ends depend on what stands beside it and are left out."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), raw.hex(), raw.hex().upper(), value[::-1]}
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = whole[-(-shift * 8 // 6) : len(whole) - (1 if (shift + len(raw)) % 3 else 0)]
        if len(inner) >= LEAST_CHARS + 2:
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= LEAST_CHARS}


REDACTOR = Redactor()
"""Of this process. It knows the shapes at once; what is known besides is learnt at the start and wherever a secret is
read."""
