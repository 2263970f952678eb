"""The providers, one declaration each. Sources: their published API pages and the reports named in
`docs/decisions/0026-wires-written-from-our-blocks.md`; nothing here was confirmed against a live one."""

from __future__ import annotations

from dataclasses import replace

from shared.providers import aws
from shared.providers.declaration import Auth, Declaration, Head, Reasoning
from shared.request.cache_plan import ENVELOPE, UNMARKED
from shared.request.dialect import CallIds, Dialect, NoContent, Texts, Wire

CUSTOM = Declaration(
    "custom", "",
    Dialect(Wire.CHAT, "custom", Texts.PLAIN), UNMARKED,
)  # fmt: skip
"""Any server that speaks chat completions: a text as a string is what all of them read."""

ANTHROPIC = Declaration(
    "anthropic", "https://api.anthropic.com",
    reasoning=Reasoning.ITEMS, hosts=("api.anthropic.com",),
    key_variable="ANTHROPIC_API_KEY", key_prefix="sk-ant-", prices="anthropic",
)  # fmt: skip

OPENAI = Declaration(
    "openai", "https://api.openai.com/v1",
    Dialect(Wire.RESPONSES, "openai", call_ids=CallIds.LONG), UNMARKED,
    Head("max_output_tokens", user=True, cache_key=True, usage_option=False, least_output=16),
    reasoning=Reasoning.ITEMS, hosts=("api.openai.com",),
    key_variable="OPENAI_API_KEY", key_prefix="sk-proj-", prices="openai",
)  # fmt: skip

OPENROUTER = Declaration(
    "openrouter", "https://openrouter.ai/api/v1",
    Dialect(Wire.CHAT, "openrouter"), ENVELOPE, Head(user=True),
    reasoning=Reasoning.DETAILS, hosts=("openrouter.ai",), headers=(("X-Title", "Nightshift"),),
    key_variable="OPENROUTER_API_KEY", key_prefix="sk-or-", prices="openrouter",
)  # fmt: skip

GEMINI = Declaration(
    "gemini", "https://generativelanguage.googleapis.com/v1beta/openai",
    Dialect(Wire.CHAT, "gemini", no_content=NoContent.LEFT_OUT), UNMARKED,
    hosts=("generativelanguage.googleapis.com",),
    key_variable="GEMINI_API_KEY", key_prefix="AIza", prices="google",
)  # fmt: skip

DEEPSEEK = Declaration(
    "deepseek", "https://api.deepseek.com/v1",
    Dialect(Wire.CHAT, "deepseek", Texts.PLAIN, NoContent.BLANK, fills="reasoning_content"), UNMARKED,
    reasoning=Reasoning.CONTENT, hosts=("api.deepseek.com",),
    key_variable="DEEPSEEK_API_KEY", prices="deepseek",
)  # fmt: skip

QWEN = Declaration(
    "qwen", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    Dialect(Wire.CHAT, "qwen", no_content=NoContent.BLANK), UNMARKED,
    hosts=("dashscope-intl.aliyuncs.com", "dashscope.aliyuncs.com", "dashscope-us.aliyuncs.com"),
    key_variable="DASHSCOPE_API_KEY",
)  # fmt: skip

MISTRAL = Declaration(
    "mistral", "https://api.mistral.ai/v1",
    Dialect(Wire.CHAT, "mistral", no_content=NoContent.BLANK, call_ids=CallIds.NINE), UNMARKED,
    Head(usage_option=False),
    hosts=("api.mistral.ai",),
    key_variable="MISTRAL_API_KEY", prices="mistral",
)  # fmt: skip
"""Refuses parameters that it does not know with a 422, and tells its usage unasked."""

AZURE = Declaration(
    "azure", "",
    Dialect(Wire.CHAT, "azure"), UNMARKED, Head("max_completion_tokens", user=True, cache_key=True),
    auth=Auth.API_KEY, hosts=(".openai.azure.com", ".services.ai.azure.com"),
    key_variable="AZURE_OPENAI_API_KEY", prices="azure",
)  # fmt: skip

BEDROCK = Declaration(
    "bedrock", "",
    Dialect(Wire.CONVERSE, "bedrock", call_ids=CallIds.LONG), UNMARKED, Head("maxTokens", user=True),
    auth=Auth.AWS, reasoning=Reasoning.ITEMS, hosts=("bedrock-runtime.", "bedrock-runtime-fips."),
    key_variable="AWS_BEARER_TOKEN_BEDROCK", prices="aws", routes=aws.route,
)  # fmt: skip
"""Its address is `https://bedrock-runtime.REGION.amazonaws.com`: which region has the data is the team's to say."""

_LOCAL = replace(CUSTOM, local=True)
OLLAMA = replace(
    _LOCAL, name="ollama", base_url="http://127.0.0.1:11434/v1", window=4_096,
    dialect=Dialect(Wire.CHAT, "ollama", Texts.PLAIN, NoContent.BLANK),
)  # fmt: skip
"""Cuts a longer prompt at its beginning without a word, and cannot be told otherwise on this wire: whoever has given it
a larger window (OLLAMA_CONTEXT_LENGTH) says so with NIGHTSHIFT_CONTEXT_WINDOW."""
VLLM = replace(
    _LOCAL, name="vllm", base_url="http://127.0.0.1:8000/v1",
    dialect=Dialect(Wire.CHAT, "vllm", Texts.PLAIN, NoContent.BLANK),
)  # fmt: skip
LLAMA_CPP = replace(
    _LOCAL, name="llama.cpp", base_url="http://127.0.0.1:8080/v1", window=4_096,
    dialect=Dialect(Wire.CHAT, "llama.cpp", Texts.PLAIN, NoContent.BLANK),
)  # fmt: skip

TABLE: dict[str, Declaration] = {
    one.name: one
    for one in (
        ANTHROPIC, OPENAI, OPENROUTER, GEMINI, DEEPSEEK, QWEN, MISTRAL, AZURE, BEDROCK, OLLAMA, VLLM, LLAMA_CPP, CUSTOM,
    )
}  # fmt: skip


def known(provider: str) -> Declaration | None:
    """The declaration behind a name: `anthropic/eu` is one of two of a kind."""
    return TABLE.get(provider.strip().lower().partition("/")[0])
