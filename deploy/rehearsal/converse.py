"""Owns the reading of Bedrock's Converse: a request is judged by that wire's rules and in its words, then laid out as
the one that the rest of the provider knows, each cache point as a mark on what stands before it.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import unquote

import orjson

from deploy.rehearsal import prefix as prefixes
from deploy.rehearsal import seen
from deploy.rehearsal.admit import Admitted
from deploy.rehearsal.checks import marks, reasoning
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.foreign_models import model_of
from deploy.rehearsal.loose import Json, is_array, is_object, object_or_empty

CONVERSE: Final = "bedrock_converse"
PATH: Final = re.compile(r"/model/([^/]+)/converse(-stream)?")
KNOWN: Final = frozenset(
    (
        "model", "stream", "messages", "system", "inferenceConfig", "toolConfig", "requestMetadata",
        "additionalModelRequestFields", "additionalModelResponseFieldPaths",
    )
)  # fmt: skip
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
CALL: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}", re.ASCII)
IMAGES: Final = frozenset(("png", "jpeg", "gif", "webp"))


@dataclass(slots=True)
class _Past:
    """The calls that wait for their results, and whether any block of the conversation is about a tool."""

    waiting: list[str]
    tools: bool = False


def asked(path: str) -> Json | None:
    """What the address says of a call, None where it is none of this wire."""
    found = PATH.fullmatch(path)
    return None if found is None else {"model": unquote(found.group(1)), "stream": found.group(2) is not None}


def laid_out(parsed: Any) -> Json:
    if not is_object(parsed):
        raise Refused("The request body is not a valid JSON object.")
    for key in parsed:
        if key not in KNOWN:
            raise Refused(f"Malformed input request: #: extraneous key [{key}] is not permitted, please reformat.")
    messages: Any = parsed.get("messages")
    if not is_array(messages) or not messages:
        raise Refused("The messages field is required: a conversation must start with a user message.")
    past = _Past([])
    found = [_message(at, object_or_empty(message), past) for at, message in enumerate(messages)]
    if found[0]["role"] != "user":
        raise Refused("A conversation must start with a user message. Try again with a conversation that does.")
    if found[-1]["role"] != "user":
        raise Refused("This model does not support assistant message prefill. It must end with a user message.")
    tools = _tools(parsed.get("toolConfig"))
    if past.tools and not tools:
        raise Refused("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
    limit = object_or_empty(parsed.get("inferenceConfig")).get("maxTokens", 4096)
    if not isinstance(limit, int) or limit < 1:
        raise Refused("The value at inferenceConfig.maxTokens must be greater than or equal to 1.")
    request: Json = {"model": parsed["model"], "max_tokens": limit, "messages": found, "stream": parsed["stream"]}
    system = _texts("system", parsed.get("system"))
    session = object_or_empty(parsed.get("requestMetadata")).get("session")
    request |= {"system": system} if system else {}
    request |= {"tools": tools} if tools else {}
    return request | ({"metadata": {"user_id": session}} if isinstance(session, str) else {})


def admit(request: Json, key: str, windows: dict[str, int]) -> Admitted:
    """A request that was laid out, if the service would take it."""
    model = model_of(request["model"])
    if model is None:
        raise Refused("The provided model identifier is invalid.")
    if request["max_tokens"] > model.max_output:
        raise Refused(f"The maximum tokens you requested exceeds the model limit of {model.max_output}.")
    messages = [seen.know(index, message) for index, message in enumerate(request["messages"])]
    marks.check(request, messages)
    prefix = prefixes.build(orjson.dumps(request), request, messages, model)
    reasoning.check(request, messages, prefix, model, frozenset())
    dropped = reasoning.left_out(messages, model)
    if dropped:
        prefix = prefixes.build(orjson.dumps(request), request, messages, model, skip=dropped)
    window = windows.get(model.name, model.context)
    if prefix.total > window:
        raise Refused(
            "The model returned the following errors: Input is too long for requested model: prompt is too long:"
            f" {prefix.total} tokens > {window} maximum"
        )
    root = blake2b(f"{model.name}\0{key}\0bedrock".encode(), digest_size=16).digest()
    return Admitted(request, model, prefix, (root, root, root))


def _message(at: int, message: Json, past: _Past) -> Json:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise Refused(f"Value '{role}' at 'messages.{at + 1}.member.role' failed to satisfy enum value set.")
    if not is_array(content) or not content:
        raise Refused(f"The content field in the Message object at messages.{at} is empty. Add a ContentBlock object.")
    asked_before, past.waiting = past.waiting, []
    found: list[Json] = []
    for number, told in enumerate(content):
        if not is_object(told) or len(told) != 1:
            raise Refused(f"ContentBlock object at messages.{at}.content.{number} must set one of its keys.")
        ((kind, value),) = told.items()
        if kind == "cachePoint":
            _mark(found, value, f"messages.{at}.content.{number}")
        else:
            found.append(_block(f"messages.{at}.content.{number}", role, kind, value, past))
    _paired(at, found, asked_before)
    return {"role": role, "content": found}


def _block(path: str, role: str, kind: str, value: Any, past: _Past) -> Json:
    match kind:
        case "text":
            return _text(path, value)
        case "toolUse" if role == "assistant":
            past.tools = True
            return _call(path, object_or_empty(value), past)
        case "toolResult" if role == "user":
            past.tools = True
            return _result(path, object_or_empty(value))
        case "reasoningContent" if role == "assistant":
            return _thought(path, object_or_empty(value))
        case "image":
            return _image(path, object_or_empty(value))
        case _:
            raise Refused(f"The {kind} block at {path} is not one that a {role} message may have.")


def _text(path: str, value: Any) -> Json:
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"The text field in the ContentBlock object at {path} is blank. Add text to it, and try again.")
    return {"type": "text", "text": value}


def _call(path: str, told: Json, past: _Past) -> Json:
    call, name = told.get("toolUseId"), told.get("name")
    if not isinstance(call, str) or not CALL.fullmatch(call) or not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(f"The toolUse at {path} failed to satisfy constraint: a name and an id of 1 to 64 characters.")
    if not is_object(told.get("input")):
        raise Refused(f"The format of the value at {path}.toolUse.input is invalid. Provide a json object.")
    past.waiting.append(call)
    return {"type": "tool_use", "id": call, "name": name, "input": told["input"]}


def _result(path: str, told: Json) -> Json:
    content: Any = told.get("content")
    if not is_array(content) or (told.get("status") == "error" and not content):
        raise Refused(f"The content field at {path}.toolResult cannot be empty when status value is error.")
    texts = [_text(path, object_or_empty(part).get("text")) for part in content]
    failed = {"is_error": True} if told.get("status") == "error" else {}
    return {"type": "tool_result", "tool_use_id": told.get("toolUseId"), "content": texts, **failed}


def _thought(path: str, told: Json) -> Json:
    if is_object(told.get("reasoningText")):
        inner: Json = told["reasoningText"]
        if not isinstance(inner.get("signature"), str):
            raise Refused(f"{path}: Invalid signature in thinking block")
        return {"type": "thinking", "thinking": inner.get("text", ""), "signature": inner["signature"]}
    return {"type": "redacted_thinking", "data": _bytes(path, told.get("redactedContent"))}


def _image(path: str, told: Json) -> Json:
    if told.get("format") not in IMAGES:
        raise Refused(f"Value at '{path}.image.format' failed to satisfy constraint: [gif, jpeg, png, webp]")
    data = _bytes(path, object_or_empty(told.get("source")).get("bytes"))
    source = {"type": "base64", "media_type": f"image/{told['format']}", "data": data}
    return {"type": "image", "source": source}


def _bytes(path: str, told: Any) -> str:
    try:
        base64.b64decode(str(told), validate=True)
    except (binascii.Error, ValueError):
        raise Refused(f"The value at {path} is not a blob.") from None
    return str(told)


def _paired(at: int, found: list[Json], asked_before: list[str]) -> None:
    results = [one["tool_use_id"] for one in found if one["type"] == "tool_result"]
    missing = [call for call in asked_before if call not in results]
    if missing:
        raise Refused(
            f"Expected toolResult blocks at messages.{at}.content for the following Ids: {', '.join(missing)}"
        )
    if len(results) > len(asked_before):
        raise Refused(
            f"The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse blocks of"
            " previous turn."
        )


def _mark(before: list[Json], told: Any, path: str) -> None:
    point = object_or_empty(told)
    ttl = point.get("ttl", "5m")
    if point.get("type") != "default" or ttl not in ("5m", "1h"):
        raise Refused(f"The cachePoint at {path} failed to satisfy constraint: Member must be of type default.")
    if not before or before[-1].get("type") in seen.REASONING or "cache_control" in before[-1]:
        raise Refused(f"The cachePoint at {path} stands behind nothing that can be cached.")
    before[-1]["cache_control"] = {"type": "ephemeral", "ttl": ttl}


def _texts(path: str, told: Any) -> list[Json]:
    found: list[Json] = []
    for at, part in enumerate(told if is_array(told) else []):
        block = object_or_empty(part)
        if "cachePoint" in block:
            _mark(found, block["cachePoint"], f"{path}.{at}")
        else:
            found.append(_text(f"{path}.{at}", block.get("text")))
    return found


def _tools(told: Any) -> list[Json]:
    found: list[Json] = []
    tools: Any = object_or_empty(told).get("tools")
    for at, part in enumerate(tools if is_array(tools) else []):
        block = object_or_empty(part)
        if "cachePoint" in block:
            _mark(found, block["cachePoint"], f"toolConfig.tools.{at}")
            continue
        spec = object_or_empty(block.get("toolSpec"))
        schema: Any = object_or_empty(spec.get("inputSchema")).get("json")
        if not isinstance(spec.get("name"), str) or not is_object(schema) or spec.get("description", "x") == "":
            raise Refused(f"The toolSpec at toolConfig.tools.{at} failed to satisfy constraint.")
        found.append({"name": spec["name"], "description": spec.get("description") or "", "input_schema": schema})
    return found
