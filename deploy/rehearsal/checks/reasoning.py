"""Owns the check of signed reasoning against the prefix it now stands behind."""

from collections.abc import Sequence
from typing import Any, Final

from deploy.rehearsal import signing
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json, is_object
from deploy.rehearsal.models import Model
from deploy.rehearsal.prefix import Prefix
from deploy.rehearsal.seen import Message

CONTROLS_BETA: Final = "thinking-binding-controls-2026-08-01"


def left_out(messages: Sequence[Message], model: Model) -> frozenset[tuple[int, int]]:
    """Blocks that the service leaves out of the prompt: older models forget reasoning once a person speaks again."""
    if model.keeps_thinking:
        return frozenset()
    spoken = 0
    for index, message in enumerate(messages):
        if message.role == "user" and message.first_other is not None:
            spoken = index
    return frozenset(place for place in _places(messages) if place[0] < spoken)


def check(
    request: Json, messages: Sequence[Message], prefix: Prefix, model: Model, betas: frozenset[str]
) -> frozenset[tuple[int, int]]:
    """Blocks to drop because the caller asked for that, or Refused where a block does not belong here."""
    places = _places(messages)
    if not places:
        return frozenset()
    drop = _drops_mismatches(request.get("thinking"), betas)
    latest = max(index for index, message in enumerate(messages) if message.role == "assistant")
    gone: set[tuple[int, int]] = set()
    for index, number in places:
        verdict = _verdict(request["messages"], index, number, prefix)
        if verdict == "good" or (verdict == "moved" and not model.bound_thinking):
            continue
        if drop:
            gone.add((index, number))
        else:
            raise Refused(_message(request["messages"], index, number, verdict, latest))
    return frozenset(gone)


def _places(messages: Sequence[Message]) -> list[tuple[int, int]]:
    return [(index, number) for index, message in enumerate(messages) for number in message.reasoning]


def _drops_mismatches(thinking: Any, betas: frozenset[str]) -> bool:
    if not is_object(thinking):
        return False
    known: Json = thinking
    binding: Any = known.get("block_binding")
    if not is_object(binding):
        return False
    if CONTROLS_BETA not in betas:
        raise Refused("thinking.block_binding: Extra inputs are not permitted")
    chosen: Json = binding
    return chosen.get("prefix_mismatch_behavior") == "drop_block"


def _verdict(messages: list[Json], index: int, number: int, prefix: Prefix) -> signing.Verdict:
    first = index
    while first and messages[first - 1]["role"] == "assistant":
        first -= 1
    chain = prefix.chain_at(prefix.message_starts[first])
    block = messages[index]["content"][number]
    if block["type"] == "redacted_thinking":
        return signing.verify("", block["data"], chain)
    return signing.verify(block["thinking"], block["signature"], chain)


def _message(messages: list[Json], index: int, number: int, verdict: signing.Verdict, latest: int) -> str:
    where = f"messages.{index}.content.{number}"
    if verdict == "moved":
        return (
            f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
            'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
    if index == latest:
        return (
            f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
            "These blocks must remain as they were in the original response."
        )
    return f"{where}: Invalid `signature` in `{messages[index]['content'][number]['type']}` block"
