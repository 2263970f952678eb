"""Owns the grammar of a conversation: roles, non-empty content, each call answered once, right after it."""

from collections.abc import Sequence
from typing import Any

from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json
from deploy.rehearsal.models import Model
from deploy.rehearsal.seen import Message


def check(messages: Sequence[Message], model: Model) -> None:
    """Refused, with the service's text, where the conversation is not one that a model could have had."""
    if messages[0].role != "user":
        raise Refused('messages: first message must use the "user" role')
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if not message.blocks and (index != last or message.role != "assistant"):
            raise Refused(
                f"messages.{index}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )
        if message.blank and message.blocks:
            raise Refused(message.blank)
        if message.role == "system":
            _system_role(messages, index, model)
    _pairs(messages)


def _system_role(messages: Sequence[Message], index: int, model: Model) -> None:
    if not model.system_role:
        raise Refused(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    follows_user = messages[index - 1].role == "user"
    if not follows_user or (index + 1 < len(messages) and messages[index + 1].role != "assistant"):
        raise Refused(
            f"messages.{index}: a system message must follow a user message and precede an assistant message or be last"
        )


def _pairs(messages: Sequence[Message]) -> None:
    """Consecutive messages of one role count as one, as the service combines them."""
    seen: set[str] = set()
    open_ids: list[str] = []
    answered: set[str] = set()
    caller = -1
    role = "user"
    other_came = False
    for index, message in enumerate(messages):
        if message.role != role:
            if role == "user" or message.role == "assistant":
                _close(open_ids, answered, caller)
                open_ids, answered = [], set()
            role, other_came = message.role, False
        if role == "user":
            if message.results:
                _answers(index, message, open_ids, answered, caller, other_came)
            other_came = other_came or message.first_other is not None
        elif message.calls:
            caller = index
            for number, name in message.calls:
                if name in seen:
                    raise Refused(f"messages.{index}.content.{number}: `tool_use` ids must be unique")
                seen.add(name)
                open_ids.append(name)
    _close(open_ids, answered, caller)


def _close(open_ids: list[str], answered: set[str], caller: int) -> None:
    missing = [name for name in open_ids if name not in answered]
    if missing:
        raise Refused(_unanswered(caller, missing))


def _answers(
    index: int, message: Message, open_ids: list[str], answered: set[str], caller: int, other_came: bool
) -> None:
    for number, name in message.results:
        if name not in open_ids:
            raise Refused(
                f"messages.{index}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if name in answered:
            raise Refused(
                f"messages.{index}.content.{number}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {name}"
            )
        if other_came or (message.first_other is not None and message.first_other < number):
            raise Refused(_unanswered(caller, [each for each in open_ids if each not in answered]))
        answered.add(name)


def _unanswered(index: int, ids: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def check_end(message: Json, model: Model) -> None:
    """Refused when the conversation ends with words put into the model's mouth, and the model takes none."""
    if message["role"] != "assistant":
        return
    if not model.prefill:
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    content: Any = message["content"]
    text = content if isinstance(content, str) else (content[-1].get("text", "") if content else "")
    if text and text[-1].isspace():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")
