"""How a provider is configured beside the process's own: `[providers.NAME]` in nightshift.toml, or NIGHTSHIFT_PROVIDERS
as the same in JSON. No key stands here: `credentials` says where those are."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Order = Literal["fill_first", "round_robin", "least_used"]


class ProviderSettings(BaseModel):
    """One provider that sessions may speak to. NAME is one of `shared.providers.table`, alone or followed by `/` and a
    word of your own (`anthropic/eu`), where there are two of a kind.

    `order`: which of its keys is taken: the first that has room, each in turn, or the one that was taken least.
    `requests_per_minute` and `tokens_per_minute` hold for each key until its provider tells others; `concurrency` is
    how many turns may run at once on each key.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str = ""
    kind: Literal["anthropic", "chat_completions", "responses", "bedrock_converse"] | None = None
    order: Order = "fill_first"
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1)


def configured(value: Any) -> Any:
    """What stands in the file or the variable, as a mapping. Raises ValueError."""
    if isinstance(value, str):
        value = json.loads(value) if value.strip() else {}
    return value
