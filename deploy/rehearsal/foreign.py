"""Owns the reading of the two other wires: chat completions and Responses. What such a request says is laid out as the
one that the rest of the provider knows, once it was judged by its own wire's rules.

Caching is theirs too: by itself, from 1,024 tokens on, the whole prompt written at each call.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from deploy.rehearsal import prefix as prefixes
from deploy.rehearsal import seen, signing
from deploy.rehearsal.admit import Admitted
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.foreign_models import Manners, manners_of, model_of
from deploy.rehearsal.loose import Json, is_array, is_object, object_or_empty

CHAT, RESPONSES = "chat", "responses"
PATHS: Final = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
VERSION: Final = "2026-10-21"
ROLES: Final = frozenset(("system", "developer", "user", "assistant", "tool"))
CHAT_KNOWN: Final = frozenset(
    (
        "model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "max_completion_tokens",
        "user", "prompt_cache_key", "temperature", "n", "reasoning_effort", "safety_identifier",
    )
)  # fmt: skip
RESPONSES_KNOWN: Final = frozenset(
    (
        "model", "input", "instructions", "tools", "tool_choice", "stream", "store", "include", "max_output_tokens",
        "user", "prompt_cache_key", "reasoning", "safety_identifier",
    )
)  # fmt: skip
LEAST_OUTPUT: Final = 16
ID_LIMIT: Final = 40
NINE: Final = re.compile(r"[A-Za-z0-9]{9}", re.ASCII)
UNVERIFIED: Final = "invalid_encrypted_content"
OVERFLOW: Final = "context_length_exceeded"


@dataclass(slots=True)
class _Past:
    """Messages in the form that the rest knows, and the calls that wait for their results."""

    messages: list[Json]
    waiting: list[str]
    manners: Manners

    def say(self, role: str, block: Json) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].append(block)
        else:
            self.messages.append({"role": role, "content": [block]})


def laid_out(wire: str, parsed: Any) -> Json:
    """The request as the rest of the provider knows it. Refused as that wire refuses."""
    if not is_object(parsed):
        raise Refused("We could not parse the JSON body of your request.")
    given: Json = parsed
    if not isinstance(given.get("model"), str):
        raise Refused("you must provide a model parameter")
    for key in given:
        strict = manners_of(given["model"]).strict and key in ("user", "prompt_cache_key", "stream_options")
        if strict or key not in (CHAT_KNOWN if wire == CHAT else RESPONSES_KNOWN):
            raise Refused(f"Unrecognized request argument supplied: {key}")
    return _chat(given) if wire == CHAT else _responses(given)


def _chat(given: Json) -> Json:
    messages: Any = given.get("messages")
    if not is_array(messages) or not messages:
        raise Refused("[] is too short - 'messages'")
    past = _Past([], [], manners_of(given["model"]))
    system: list[Json] = []
    for at, message in enumerate(messages):
        _chat_message(at, object_or_empty(message), past, system)
    _answered(past)
    limit = given.get("max_completion_tokens", given.get("max_tokens"))
    return _request(given, past, system, _chat_tools(given), limit)


def _chat_message(at: int, message: Json, past: _Past, system: list[Json]) -> None:
    role = message.get("role")
    if role not in ROLES:
        raise Refused(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'tool'.")
    if role != "tool":
        _answered(past)
    match role:
        case "system" | "developer":
            system.extend(_texts(at, message.get("content")))
        case "user":
            for block in _texts(at, message.get("content")):
                past.say("user", block)
        case "tool":
            call = message.get("tool_call_id")
            if call not in past.waiting:
                raise Refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                    " 'tool_calls'."
                )
            past.waiting.remove(call)
            past.say("user", _result(call, _texts(at, message.get("content"))))
        case _:
            _assistant(at, message, past)


def _assistant(at: int, message: Json, past: _Past) -> None:
    calls: Any = message.get("tool_calls") or []
    content = message.get("content")
    if not calls and content is None:
        raise Refused(f"Invalid value for 'content': expected a string, got null. 'messages.[{at}].content'")
    for key in ("reasoning_content", "reasoning_details"):
        if message.get(key):
            past.say("assistant", _thought(message[key]))
    for block in _texts(at, content) if content else []:
        past.say("assistant", block)
    for number, call in enumerate(calls):
        function = object_or_empty(object_or_empty(call).get("function"))
        _checked_call(f"messages[{at}].tool_calls[{number}]", call.get("id"), function.get("arguments"))
        _in_manner(past.manners, message, call, number)
        if len(call["id"]) > ID_LIMIT:
            raise Refused(
                f"Invalid 'messages[{at}].tool_calls[{number}].id': string too long. Expected a string with maximum"
                f" length {ID_LIMIT}, but got a string with length {len(call['id'])} instead."
            )
        past.say("assistant", _call(call["id"], function.get("name"), function["arguments"]))
        past.waiting.append(call["id"])


def _in_manner(manners: Manners, message: Json, call: Json, number: int) -> None:
    if manners.wants_reasoning and "reasoning_content" not in message:
        raise Refused("The reasoning_content in the thinking mode must be passed back to the API.")
    if manners.nine_ids and not NINE.fullmatch(call["id"]):
        raise Refused("Tool call id was " + call["id"] + " but must be a-z, A-Z, 0-9, with a length of 9.")
    signed = object_or_empty(object_or_empty(call.get("extra_content")).get("google")).get("thought_signature")
    if manners.signs_calls and number == 0 and signed != signature_of(call["id"]):
        raise Refused("Function call is missing a thought_signature in functionCall parts.")


def signature_of(call: str) -> str:
    return signing.sign(call, b"call")


def _responses(given: Json) -> Json:
    items: Any = given.get("input")
    if isinstance(items, str) and items:
        items = [{"role": "user", "content": items}]
    if not is_array(items) or not items:
        raise Refused("Missing required parameter: 'input'.")
    past = _Past([], [], manners_of(given["model"]))
    for at, told in enumerate(items):
        _item(at, object_or_empty(told), past)
    _answered(past)
    system = [_text(given["instructions"])] if given.get("instructions") else []
    limit = given.get("max_output_tokens")
    if isinstance(limit, int) and limit < LEAST_OUTPUT:
        raise Refused(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but got"
            f" {limit} instead."
        )
    return _request(given, past, system, _tools(given, given.get("tools")), limit)


def _item(at: int, item: Json, past: _Past) -> None:
    match item.get("type", "message"):
        case "message":
            role = item.get("role")
            wanted = "output_text" if role == "assistant" else "input_text"
            content: Any = item.get("content")
            if isinstance(content, str):
                content = [{"type": wanted, "text": content}]
            for part in map(object_or_empty, _list(content)):
                kind = part.get("type")
                if kind == wanted:
                    past.say("assistant" if role == "assistant" else "user", _text(part["text"]))
                elif kind != "input_image":
                    raise Refused(f"Invalid value: '{kind}'. Supported values are: '{wanted}'.")
        case "reasoning":
            if signing.verify(str(item.get("id")), str(item.get("encrypted_content")), b"item") != "good":
                raise Refused(
                    f"The encrypted content for item {item.get('id')} could not be verified.", code=UNVERIFIED
                )
            past.say("assistant", _thought(item))
        case "function_call":
            _checked_call(f"input[{at}]", item.get("call_id"), item.get("arguments"))
            past.say("assistant", _call(item["call_id"], item.get("name"), item["arguments"]))
            past.waiting.append(item["call_id"])
        case "function_call_output":
            if item.get("call_id") not in past.waiting:
                raise Refused(f"No tool call found for function call output with call_id {item.get('call_id')}.")
            past.waiting.remove(item["call_id"])
            past.say("user", _result(item["call_id"], [_text(item.get("output"))]))
        case kind:
            raise Refused(f"Invalid value: '{kind}' at input[{at}].type")


def _answered(past: _Past) -> None:
    if past.waiting:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(past.waiting)}"
        )


def _request(given: Json, past: _Past, system: list[Json], tools: list[Json], limit: Any) -> Json:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise Refused("Invalid value for the number of output tokens: integer below minimum value. Expected >= 1.")
    request: Json = {"model": given["model"], "max_tokens": limit or 4096, "messages": past.messages}
    request |= {"system": system} if system else {}
    request |= {"tools": tools} if tools else {}
    user = given.get("user") or given.get("safety_identifier")
    return (
        request
        | ({"metadata": {"user_id": user}} if isinstance(user, str) else {})
        | {"stream": given.get("stream") is True}
    )


def _chat_tools(given: Json) -> list[Json]:
    return _tools(given, [object_or_empty(tool).get("function") for tool in _list(given.get("tools"))])


def _list(value: Any) -> list[Any]:
    return value if is_array(value) else []


def _tools(given: Json, told: Any) -> list[Json]:
    found: list[Json] = []
    for at, tool in enumerate(told or []):
        one = object_or_empty(tool)
        if not isinstance(one.get("name"), str) or not is_object(one.get("parameters")):
            raise Refused(f"Missing required parameter: 'tools[{at}].name'.")
        found.append(
            {"name": one["name"], "description": one.get("description") or "", "input_schema": one["parameters"]}
        )
    if given.get("tool_choice") not in (None, "auto", "none"):
        raise Refused("Invalid value for 'tool_choice'")
    return found


def _checked_call(path: str, call: Any, arguments: Any) -> None:
    if not isinstance(call, str) or not call:
        raise Refused(f"Missing required parameter: '{path}.id'.")
    if not isinstance(arguments, str):
        raise Refused(f"Invalid type for '{path}.arguments': expected a string, but got an object instead.")


def _call(call: str, name: Any, arguments: str) -> Json:
    if not isinstance(name, str) or not name or len(name) > 64:
        raise Refused("Invalid 'function.name': empty or too long.")
    try:
        given = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        given = {"unread": arguments}
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def _texts(at: int, content: Any) -> list[Json]:
    if isinstance(content, str):
        return [_text(content)] if content else []
    if not is_array(content):
        raise Refused(f"Invalid type for 'messages[{at}].content': expected a string or a list.")
    parts = [object_or_empty(part) for part in _list(content)]
    return [_text(part["text"]) for part in parts if part.get("type") == "text"]


def _text(text: Any) -> Json:
    return {"type": "text", "text": text if isinstance(text, str) and text.strip() else "(blank)"}


def _result(call: str, texts: list[Json]) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": texts}


def _thought(told: Any) -> Json:
    return {"type": "redacted_thinking", "data": orjson.dumps(told).decode()}


def admit(request: Json, key: str, windows: dict[str, int]) -> Admitted:
    """A request that was laid out, if the service would take it."""
    model = model_of(request["model"])
    if model is None:
        raise Refused(
            f"The model '{request['model']}' does not exist or you do not have access to it.",
            "not_found_error", code="model_not_found",
        )  # fmt: skip
    if request["max_tokens"] > model.max_output:
        raise Refused(
            f"max_tokens is too large: {request['max_tokens']}. This model supports at most {model.max_output}."
        )
    messages = [seen.know(index, message) for index, message in enumerate(request["messages"])]
    prefix = prefixes.build(orjson.dumps(request), request, messages, model, "5m")
    window = windows.get(model.name, model.context)
    if prefix.total > window:
        raise Refused(
            f"This model's maximum context length is {window} tokens. However, your messages resulted in"
            f" {prefix.total} tokens. Please reduce the length of the messages.",
            code=OVERFLOW,
        )
    root = blake2b(f"{model.name}\0{key}\0foreign".encode(), digest_size=16).digest()
    return Admitted(request, model, prefix, (root, root, root))
