"""Owns the shape of a request: required fields, types, extra keys. What passes can be walked without further looks."""

from typing import Any, Final

from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json, is_array, is_object

TOP_KEYS: Final = frozenset(
    [
        "cache_control",
        "container",
        "context_management",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "betas",
    ]
)
CONTENT_KEYS: Final = {
    "text": frozenset(("type", "text", "cache_control", "citations")),
    "image": frozenset(("type", "source", "cache_control")),
    "document": frozenset(("type", "source", "cache_control", "citations", "context", "title")),
    "tool_use": frozenset(("type", "id", "name", "input", "cache_control", "caller")),
    "tool_result": frozenset(("type", "tool_use_id", "content", "is_error", "cache_control")),
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
}
REQUIRED: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    "text": (("text", str),),
    "image": (("source", dict),),
    "document": (("source", dict),),
    "tool_use": (("id", str), ("name", str), ("input", dict)),
    "tool_result": (("tool_use_id", str),),
    "thinking": (("thinking", str), ("signature", str)),
    "redacted_thinking": (("data", str),),
}
WORDS: Final = {str: "string", dict: "dictionary", list: "list", int: "integer", bool: "boolean"}
BY_ROLE: Final = {
    "user": frozenset(("text", "image", "document", "tool_result")),
    "assistant": frozenset(("text", "tool_use", "thinking", "redacted_thinking")),
    "system": frozenset(("text",)),
}
TTLS: Final = (None, "5m", "1h")
MESSAGE_KEYS: Final = frozenset(("role", "content"))
EXTRA: Final = "Extra inputs are not permitted"
MISSING: Final = "Field required"


def check(request: Any) -> Json:
    """The request as a dictionary of known shape, its messages still unseen; or Refused."""
    if not is_object(request):
        raise Refused("Input should be a valid dictionary")
    body: Json = request
    for key in body:
        if key not in TOP_KEYS:
            raise Refused(f"{key}: {EXTRA}")
    for key, kind in (("model", str), ("messages", list)):
        _need(body, key, kind, "")
    if "stream" in body and not isinstance(body["stream"], bool):
        raise Refused("stream: Input should be a valid boolean")
    _metadata(body.get("metadata"))
    _system(body.get("system"))
    _tools(body.get("tools"))
    if body.get("cache_control") is not None:
        _control(body["cache_control"], "")
    if not body["messages"]:
        raise Refused("messages: at least one message is required")
    return body


def _need(holder: Json, key: str, kind: type, path: str) -> None:
    if key not in holder:
        raise Refused(f"{path}{key}: {MISSING}")
    if type(holder[key]) is not kind:
        raise Refused(f"{path}{key}: Input should be a valid {WORDS[kind]}")


def _metadata(metadata: Any) -> None:
    if metadata is None:
        return
    if not is_object(metadata):
        raise Refused("metadata: Input should be a valid dictionary")
    known: Json = metadata
    for key, value in known.items():
        if key != "user_id":
            raise Refused(f"metadata.{key}: {EXTRA}")
        if value is not None and not isinstance(value, str):
            raise Refused("metadata.user_id: Input should be a valid string")


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    if not is_array(system):
        raise Refused("system: Input should be a valid list")
    blocks: list[Any] = system
    for index, block in enumerate(blocks):
        _block(block, f"system.{index}", frozenset(("text",)))
        if not block["text"]:
            raise Refused("system: text content blocks must be non-empty")


TOOL_KEYS: Final = frozenset(
    [
        "name",
        "description",
        "input_schema",
        "cache_control",
        "type",
        "strict",
        "defer_loading",
        "allowed_callers",
        "input_examples",
        "eager_input_streaming",
    ]
)


def _tools(tools: Any) -> None:
    if tools is None:
        return
    if not is_array(tools):
        raise Refused("tools: Input should be a valid list")
    names: set[str] = set()
    entries: list[Any] = tools
    for index, tool in enumerate(entries):
        if not is_object(tool):
            raise Refused(f"tools.{index}: Input should be a valid dictionary")
        entry: Json = tool
        _need(entry, "name", str, f"tools.{index}.")
        if entry.get("cache_control") is not None:
            _control(entry["cache_control"], f"tools.{index}.custom")
        if not isinstance(entry.get("description", ""), str):
            raise Refused(f"tools.{index}.custom.description: Input should be a valid string")
        if entry.get("type", "custom") == "custom":
            _need(entry, "input_schema", dict, f"tools.{index}.custom.")
            _schema(entry, index)
        if entry["name"] in names:
            raise Refused("tools: Tool names must be unique.")
        names.add(entry["name"])


def _schema(tool: Json, index: int) -> None:
    for key in tool:
        if key not in TOOL_KEYS:
            raise Refused(f"tools.{index}.custom.{key}: {EXTRA}")
    if tool["input_schema"].get("type") != "object":
        raise Refused(f"tools.{index}.custom.input_schema.type: Field required")
    if tool.get("defer_loading") and tool.get("cache_control"):
        raise Refused(f"tools.{index}: cache_control cannot be set on a tool with defer_loading")


def check_message(index: int, message: Any) -> None:
    """Refused where one message is not of known shape; its place in the conversation is judged elsewhere."""
    if not is_object(message):
        raise Refused(f"messages.{index}: Input should be a valid dictionary")
    entry: Json = message
    for key in entry:
        if key not in MESSAGE_KEYS:
            raise Refused(f"messages.{index}.{key}: {EXTRA}")
    role = entry.get("role")
    if "role" not in entry:
        raise Refused(f"messages.{index}.role: {MISSING}")
    if not isinstance(role, str) or role not in BY_ROLE:
        raise Refused(f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'")
    if "content" not in entry:
        raise Refused(f"messages.{index}.content: {MISSING}")
    content = entry["content"]
    if isinstance(content, str):
        return
    if not is_array(content):
        raise Refused(f"messages.{index}.content: Input should be a valid list")
    blocks: list[Any] = content
    allowed = BY_ROLE[role]
    for number, block in enumerate(blocks):
        _block(block, f"messages.{index}.content.{number}", allowed)


def _block(block: Any, path: str, allowed: frozenset[str]) -> None:
    if not is_object(block):
        raise Refused(f"{path}: Input should be a valid dictionary")
    entry: Json = block
    kind = entry.get("type")
    if "type" not in entry:
        raise Refused(f"{path}.type: {MISSING}")
    if not isinstance(kind, str) or kind not in allowed:
        known = isinstance(kind, str) and kind in CONTENT_KEYS
        tags = ", ".join(f"'{name}'" for name in sorted(allowed))
        raise Refused(
            f"{path}: `{kind}` blocks are not permitted here"
            if known
            else f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    keys = CONTENT_KEYS[kind]
    if not entry.keys() <= keys:
        extra = next(key for key in entry if key not in keys)
        raise Refused(f"{path}.{kind}.{extra}: {EXTRA}")
    for name, wanted in REQUIRED[kind]:
        if type(entry.get(name)) is not wanted:
            _need(entry, name, wanted, f"{path}.{kind}.")
    if entry.get("cache_control") is not None:
        _control(entry["cache_control"], path)
        if kind == "text" and not entry["text"]:
            raise Refused(f"{path}.text: cache_control cannot be set for empty text blocks")
    if kind == "tool_result":
        _result(entry, path)


def _control(control: Any, path: str) -> None:
    """A cache mark's own shape; how many there may be and in which order is judged elsewhere."""
    if not is_object(control):
        raise Refused(f"{path}.cache_control: Input should be a valid dictionary")
    for key in control:
        if key not in ("type", "ttl"):
            raise Refused(f"{path}.cache_control.ephemeral.{key}: {EXTRA}")
    if control.get("type") != "ephemeral":
        raise Refused(f"{path}.cache_control.type: Input should be 'ephemeral'")
    if control.get("ttl", "5m") not in TTLS:
        raise Refused(f"{path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")


def _result(block: Json, path: str) -> None:
    if not isinstance(block.get("is_error", False), bool):
        raise Refused(f"{path}.tool_result.is_error: Input should be a valid boolean")
    content = block.get("content")
    if content is None or isinstance(content, str):
        return
    if not is_array(content):
        raise Refused(f"{path}.tool_result.content: Input should be a valid list")
    parts: list[Any] = content
    for number, part in enumerate(parts):
        _block(part, f"{path}.tool_result.content.{number}", frozenset(("text", "image", "document")))
