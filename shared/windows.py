"""Owns what a provider's words about a prompt that is too long say of the model's window. Pure."""

from __future__ import annotations

import re

LEAST, MOST = 1_024, 20_000_000
"""Tokens. What lies outside was misread."""
SOURCE_CHARS = 300

_NUMBER = r"(\d[\d,._]*\d|\d)"
_SAYINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"tokens > {_NUMBER} maximum",  # Anthropic
        rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",  # Anthropic, older
        rf"maximum context length (?:is|of) {_NUMBER}",  # OpenAI, older; vLLM; OpenRouter; DeepSeek
        rf"maximum number of tokens allowed \(?{_NUMBER}",  # Gemini
        rf"available context size \({_NUMBER}",  # llama.cpp
        rf"range of input length should be \[\d+, *{_NUMBER}\]",  # Qwen
        rf"context (?:window|length) (?:is|of) (?:only )?{_NUMBER} tokens",  # LM Studio, Mistral
        rf"n_ctx[\"']?[:= ]+{_NUMBER}",  # llama.cpp: a member of its error
    )
)
"""One group each, the window in tokens. Source: the providers' texts of errors (reference/providers.md 1.3, 2; public
issues)."""


def told(words: str) -> int | None:
    """The window that the words name, None where they name none."""
    for saying in _SAYINGS:
        found = saying.search(words)
        if found is not None:
            window = int(re.sub(r"[,._]", "", found.group(1)))
            return window if LEAST <= window <= MOST else None
    return None


def source(words: str) -> str:
    """The part of the words that is kept as the source of what was learned."""
    return " ".join(words.split())[:SOURCE_CHARS] or "no words"
