"""Owns what depends on model and version: output limit, window, sampling, reasoning, tool choice, pre-warm."""

from collections.abc import Sequence
from typing import Final

from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json, is_object, object_or_empty
from deploy.rehearsal.models import Model
from deploy.rehearsal.seen import Message

NO_SAMPLING_FROM: Final = "2026-10-21"
SAMPLING: Final = ("temperature", "top_p", "top_k")
THINKING_TYPES: Final = ("enabled", "disabled", "adaptive", "between_tools")


def check(request: Json, messages: Sequence[Message], model: Model, version: str) -> None:
    """Refused where a parameter is not one that this model, or this version of the interface, takes."""
    _max_tokens(request, model)
    if version >= NO_SAMPLING_FROM:
        for name in SAMPLING:
            if name in request:
                raise Refused(f"{name}: Extra inputs are not permitted")
        _citations(messages)
    _thinking(request, model)
    _tool_choice(request, model)
    if request["max_tokens"] == 0:
        _prewarm(request, model)


def check_window(prompt: int, window: int) -> None:
    """Refused when the prompt is larger than the window."""
    if prompt > window:
        raise Refused(f"prompt is too long: {prompt} tokens > {window} maximum")


def _max_tokens(request: Json, model: Model) -> None:
    if "max_tokens" not in request:
        raise Refused("max_tokens: Field required")
    value = request["max_tokens"]
    if type(value) is not int:
        raise Refused("max_tokens: Input should be a valid integer")
    if value < 0:
        raise Refused("max_tokens: Input should be greater than or equal to 0")
    if value > model.max_output:
        raise Refused(
            f"max_tokens: {value} > {model.max_output}, "
            f"which is the maximum allowed number of output tokens for {model.name}"
        )


def _citations(messages: Sequence[Message]) -> None:
    for index, message in enumerate(messages):
        if message.has_citations and message.role == "user":
            raise Refused(f"messages.{index}.content.0.text.citations: Extra inputs are not permitted")


def _thinking(request: Json, model: Model) -> None:
    thinking = request.get("thinking")
    if thinking is None:
        return
    if not is_object(thinking):
        raise Refused("thinking: Input should be a valid dictionary")
    known: Json = thinking
    kind = known.get("type")
    if kind not in THINKING_TYPES:
        raise Refused(f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if kind == "disabled" and model.always_thinks:
        raise Refused(f"thinking.type: thinking cannot be disabled on {model.name}")
    budget = known.get("budget_tokens")
    if kind == "enabled" and budget is not None:
        if type(budget) is not int or budget < 1024:
            raise Refused("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= request["max_tokens"]:
            raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _tool_choice(request: Json, model: Model) -> None:
    choice = request.get("tool_choice")
    if choice is None:
        return
    if not is_object(choice):
        raise Refused("tool_choice: Input should be a valid dictionary")
    known: Json = choice
    kind = known.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise Refused(f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if not request.get("tools"):
        raise Refused("tool_choice: tool_choice may only be specified while providing tools")
    if kind in ("any", "tool") and not model.forced_tool:
        raise Refused(f"tool_choice.type: forced tool use is not supported on {model.name}")
    if kind == "tool" and known.get("name") not in [tool["name"] for tool in request["tools"]]:
        raise Refused(f"tool_choice.name: Tool '{known.get('name')}' not found in provided tools")


def thinks(request: Json, model: Model) -> bool:
    """Whether this request asks for reasoning, or the model reasons whatever is asked."""
    thinking: Json | None = request.get("thinking")
    return model.always_thinks if thinking is None else thinking["type"] != "disabled"


def _prewarm(request: Json, model: Model) -> None:
    if request.get("stream"):
        raise Refused("max_tokens: 0 is not supported with streaming")
    if thinks(request, model):
        raise Refused("max_tokens: 0 is not supported when thinking is enabled")
    if object_or_empty(request.get("tool_choice")).get("type") in ("any", "tool"):
        raise Refused("max_tokens: 0 is not supported with a forced tool_choice")
    if object_or_empty(request.get("output_config")).get("format"):
        raise Refused("max_tokens: 0 is not supported with output_config.format")
