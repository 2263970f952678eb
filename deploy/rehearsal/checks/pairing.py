"""Owns the grammar of a conversation: roles, non-empty content, each call answered once, right after it."""

from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json
from deploy.rehearsal.models import Model


def check(messages: list[Json], model: Model) -> None:
    """Refused, with the service's text, where the conversation is not one that a model could have had."""
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    last = len(messages) - 1
    for index, message in enumerate(messages):
        _content(index, message, last)
    _system_roles(messages, model)
    _pairs(messages)
    if messages[-1]["role"] == "assistant":
        _prefill(messages[-1], model)


def _content(index: int, message: Json, last: int) -> None:
    content = message["content"]
    if not content:
        if index == last and message["role"] == "assistant":
            return
        raise Refused(
            f"messages.{index}: all messages must have non-empty content "
            "except for the optional final assistant message"
        )
    if isinstance(content, str):
        if content.isspace():
            raise Refused("messages: text content blocks must contain non-whitespace text")
        return
    for block in content:
        if block["type"] != "text":
            continue
        text = block["text"]
        if not text:
            raise Refused("messages: text content blocks must be non-empty")
        if text.isspace():
            raise Refused("messages: text content blocks must contain non-whitespace text")


def _system_roles(messages: list[Json], model: Model) -> None:
    for index, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if not model.system_role:
            raise Refused(
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
                'not "system" as an input message role.'
            )
        follows_user = messages[index - 1]["role"] == "user"
        if not follows_user or (index + 1 < len(messages) and messages[index + 1]["role"] != "assistant"):
            raise Refused(
                f"messages.{index}: a system message must follow a user message "
                "and precede an assistant message or be last"
            )


def _pairs(messages: list[Json]) -> None:
    """Consecutive messages of one role count as one, as the service combines them."""
    seen: set[str] = set()
    open_ids: list[str] = []
    caller = -1
    index = 0
    while index < len(messages):
        role = messages[index]["role"]
        end = index
        while end < len(messages) and messages[end]["role"] == role:
            end += 1
        if role == "user":
            _answers(messages, index, end, open_ids, caller)
            open_ids = []
        elif role == "assistant":
            if open_ids:
                raise Refused(_unanswered(caller, open_ids))
            open_ids = _calls(messages, index, end, seen)
            caller = end - 1
        index = end
    if open_ids:
        raise Refused(_unanswered(caller, open_ids))


def _calls(messages: list[Json], start: int, end: int, seen: set[str]) -> list[str]:
    found: list[str] = []
    for index in range(start, end):
        content = messages[index]["content"]
        if isinstance(content, str):
            continue
        for number, block in enumerate(content):
            if block["type"] != "tool_use":
                continue
            if block["id"] in seen:
                raise Refused(f"messages.{index}.content.{number}: `tool_use` ids must be unique")
            seen.add(block["id"])
            found.append(block["id"])
    return found


def _answers(messages: list[Json], start: int, end: int, open_ids: list[str], caller: int) -> None:
    answered: set[str] = set()
    other_came = False
    for index in range(start, end):
        content = messages[index]["content"]
        if isinstance(content, str):
            other_came = True
            continue
        for number, block in enumerate(content):
            if block["type"] != "tool_result":
                other_came = True
                continue
            name = block["tool_use_id"]
            if name not in open_ids:
                raise Refused(
                    f"messages.{index}.content.{number}: "
                    f"unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if name in answered:
                raise Refused(
                    f"messages.{index}.content.{number}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {name}"
                )
            if other_came:
                raise Refused(_unanswered(caller, [each for each in open_ids if each not in answered]))
            answered.add(name)
    missing = [name for name in open_ids if name not in answered]
    if missing:
        raise Refused(_unanswered(caller, missing))


def _unanswered(index: int, ids: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _prefill(message: Json, model: Model) -> None:
    if not model.prefill:
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    content = message["content"]
    text = content if isinstance(content, str) else (content[-1].get("text", "") if content else "")
    if text and text[-1].isspace():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")
