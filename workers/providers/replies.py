"""Owns the values that the wire hands out: deltas while it streams, the whole reply, what there was of a broken one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in disjoint buckets; the prompt is the sum of all but `output`. `reasoning` is a part of `output`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Text:
    """What the model said, without NUL and lone surrogates; the text deltas of its block, joined, are this text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. `malformed` says why it cannot run; the model gets that as a tool error."""

    id: str
    name: str
    arguments_text: str
    malformed: str | None = None

    @property
    def sent_arguments(self) -> str:
        """What later requests carry as `input`: the model's own text, or `{}` where that is not a JSON object."""
        return "{}" if self.malformed is not None else self.arguments_text


@dataclass(frozen=True, slots=True)
class Reasoning:
    """`raw_block_text` is the block as it must be sent back, to the byte; `text_shown` is for display only."""

    text_shown: str
    raw_block_text: str


ReplyBlock = Text | ToolCall | Reasoning


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, blocks in the order of its content. `usage` is None where none was told, or an absurd one."""

    blocks: tuple[ReplyBlock, ...]
    stop_reason: str | None
    usage: Usage | None
    request_id: str | None
    first_token_ms: float | None
    total_ms: float
    model: str | None
    message_id: str | None
    refusal: str | None = None
    notes: tuple[str, ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    """The provider's rate-limit headers, lower case."""

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True)
class Partial:
    """What had arrived when a call ended early: shown to people, never stored as an answer."""

    text: str = field(default="", repr=False)
    usage: Usage | None = None
    began: bool = False
    """The provider had begun to answer, so the prompt was read and will be billed."""


@dataclass(frozen=True, slots=True)
class Began:
    """The response begins: from here on the provider's cache entry can be read by others."""

    after_ms: float
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class FirstToken:
    after_ms: float


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStarted:
    pass


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStopped:
    pass


@dataclass(frozen=True, slots=True)
class ToolPreparing:
    name: str


Delta = Began | FirstToken | TextDelta | ReasoningStarted | ReasoningDelta | ReasoningStopped | ToolPreparing
