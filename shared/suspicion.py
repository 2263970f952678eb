"""Whether a text that is about to enter a prompt reads like an instruction to the model. Pure.

A net, not a wall: what it lets through still stands between tags as material, and what may happen is decided outside
the prompt. What it catches is left out and named, so that a person can put it in other words.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import re2

_OLD = r"(?:previous|prior|above|earlier|preceding|foregoing|former|your|system|safety)"
_ANY = r"(?:all|any|every|the|these|those|of|its|other)"
_TOLD = r"(?:instruction|prompt|directive)s?"
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

# Read on a text whose signs are compatible, whose letters are small and whose gaps are one blank. Every repetition is
# bounded: a text may be as long as it likes.
_IGNORE = (
    (
        rf"\b(?:ignore|disregard|forget|override|bypass|neglect)\b (?:{_ANY} ){{0,3}}{_OLD}\b"
        r".{0,40}?\b(?:instruction|prompt|rule|guideline|directive|direction|command|message)s?\b"
    ),
    rf"\b(?:ignore|disregard|forget|override|bypass)\b (?:{_ANY} ){{1,3}}{_TOLD}\b",
    rf"\b(?:do not|don'?t|stop) (?:follow|obey|heed)\w{{0,3}} (?:\w{{1,12}} ){{0,3}}{_TOLD}\b",
)
_IGNORE_ELSEWHERE = (
    (
        r"\b(?:ignorier|vergiss|vergesst|missacht)\w{0,4} .{0,30}?(?:vorherig|bisherig|obig|früher|vorig|alle|deine)"
        r"\w{0,3} .{0,20}?(?:anweisung|instruktion|vorgabe|befehl|regel)"
    ),
    (
        r"\b(?:ignore[rz]?|oublie[rz]?) .{0,30}?\b(?:instructions?|consignes?)\b"
        r".{0,20}?\b(?:précédent|antérieur|ci-dessus)"
    ),
    r"\b(?:ignore[rz]?|oublie[rz]?) toutes .{0,20}?\b(?:instructions|consignes)\b",
    (
        r"\b(?:ignora|olvida|omite|ignore|esqueça|dimentica)\w{0,2} .{0,30}?"
        r"\b(?:instrucciones|indicaciones|instruções|istruzioni)\b"
    ),
    r"(?:忽略|无视|無視|忘记|忘記|不要理会).{0,12}(?:指令|指示|提示|命令|规则|規則)",
    r"(?:以前|前|上記|これまで|すべて|全て|全部).{0,10}(?:指示|命令|プロンプト).{0,6}(?:無視|忘れ)",
    r"(?:이전|위의|모든).{0,10}(?:지시|명령|프롬프트).{0,8}(?:무시|잊)",
    r"(?:игнорируй|забудь)\w{0,3} .{0,30}?(?:инструкц|указани|команд)",
)
_BECOME = (
    r"\byou are (?:now|no longer) (?:an? |the |in |bound |my |not )",
    r"\b(?:pretend to be|pretend that you|act as if you (?:are|were))\b",
    r"\bact as an? (?:unrestricted|unfiltered|jailbroken|root|admin)",
    r"\bfrom now on,? you (?:are|must|will|shall|have to|only)\b",
    r"\bnew (?:system )?(?:instructions|prompt|persona)\b ?[:.]",
)
_KEEP = (
    (
        r"\b(?:do not|don'?t|never|without) (?:tell|inform|alert|notify|mention|warn)\w{0,3} "
        r"(?:this |it |that )?(?:to )?(?:the |your |any )?(?:user|person|human|operator|admin|owner)s?\b"
    ),
)
_REVEAL = (
    (
        r"\b(?:reveal|print|repeat|output|leak|dump|disclose|show)\b .{0,30}?"
        r"\b(?:system prompt|your (?:instructions|prompt|rules)|hidden (?:instructions|prompt))\b"
    ),
)
_SECRETS = (
    r"\b(?:curl|wget|nc)\b .{0,200}?(?:\$\{?\w{0,40}(?:key|token|secret|password)|\.env\b|id_rsa|\.ssh/)",
    (
        r"\b(?:send|post|upload|mail|forward|exfiltrate|copy)\b .{0,60}?"
        r"\b(?:secret|credential|password|api[ _-]?key|token|private key)s?\b"
        r".{0,40}?(?:https?://|www\.|\b[\w.+-]{1,64}@[\w-]{1,64}\.)"
    ),
)
_SYSTEM = (
    r"\[nightshift:",
    r"<\|?(?:im_start|im_end|system|endoftext)\|?>",
    r"\[/?inst\]",
    r"< ?/? ?(?:system|assistant|tool_result|memory|profile|skills|context-file|included)\b",
    (
        r"(?:^|[.\n:] ?)(?:system|assistant) ?(?:prompt|message|instruction)?s? ?: "
        r"?(?:you|ignore|from now|your|new)\b"
    ),
)
# Tool results are long and nearly all harmless, and a backtracking engine takes a millisecond a kilobyte to say so. A
# linear one looks first whether there could be a match. Its notion of a letter is narrower, so for patterns of other
# scripts that is told by words of which each match holds one.
_STEMS = (
    "anweisung", "instruktion", "vorgabe", "befehl", "regel", "instruction", "consigne", "instruccion", "indicacion",
    "instruç", "istruzion", "指令", "指示", "提示", "命令", "规则", "規則", "プロンプト", "지시", "명령", "프롬프트",
    "инструкц", "указани", "команд",
)  # fmt: skip


_LINEAR: Any = re2  # it ships no types


def _group(why: str, patterns: tuple[str, ...]) -> tuple[str, Any, re.Pattern[str]]:
    joined = "|".join(patterns)
    return why, _LINEAR.compile(joined), re.compile(joined)


_ELSEWHERE = re.compile("|".join(_IGNORE_ELSEWHERE))
_COMPILED = tuple(
    _group(why, patterns)
    for why, patterns in (
        ("to ignore its instructions", _IGNORE),
        ("to be somebody else", _BECOME),
        ("to keep something from people", _KEEP),
        ("to give away what it was told", _REVEAL),
        ("to give away secrets", _SECRETS),
        ("that speaks as the system", _SYSTEM),
    )
)
INVISIBLE = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""Of the category Cf. A test holds it against the tables."""


def why(text: str) -> str | None:
    """What the text reads like an instruction to do ("to ignore its instructions"), or None."""
    if _HIDDEN.search(text):
        return "in hidden characters"
    plain = _plain(text)
    if any(stem in plain for stem in _STEMS) and _ELSEWHERE.search(plain):
        return _COMPILED[0][0]
    return next(
        (why for why, first, pattern in _COMPILED if first.search(plain) is not None and pattern.search(plain)), None
    )


def _plain(text: str) -> str:
    """As a reader takes it in: no invisible characters, no two ways to write a letter, one blank for any gap."""
    shown = text if text.isascii() else INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(shown.casefold().replace("\u2019", "'").split())
