"""Owns what providers' usage exports hold: CSV in, tokens by day (UTC), model and bucket out. Pure.

Columns: Anthropic's console (usage_date_utc, model_version, usage_*), OpenAI's (start_time_iso, model, input_tokens,
input_cached_tokens, output_tokens, num_model_requests). Input that OpenAI counts includes what was read from its cache.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from api.cli.exits import Exit, Stop

BUCKETS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
Key = tuple[date, str]
"""Day and model."""


@dataclass(slots=True)
class Export:
    """`requests` is None where the export does not count them."""

    provider: str
    tokens: dict[Key, dict[str, int]] = field(default_factory=dict[Key, dict[str, int]])
    requests: dict[Key, int] | None = None
    unknown: tuple[str, ...] = ()
    """Columns that nobody here knows, which hold something other than nothing."""

    @property
    def days(self) -> tuple[date, date]:
        found = [at for at, _ in self.tokens]
        return min(found), max(found)


_ANTHROPIC = {
    "usage_input_tokens_no_cache": "input", "usage_output_tokens": "output",
    "usage_input_tokens_cache_read": "cache_read", "usage_input_tokens_cache_write_5m": "cache_write_5m",
    "usage_input_tokens_cache_write_1h": "cache_write_1h",
}  # fmt: skip
_OPENAI = {"input_tokens": "input", "output_tokens": "output", "input_cached_tokens": "cache_read"}
_NO_TOKENS = {
    "anthropic": frozenset(
        {"usage_date_utc", "model_version", "api_key", "workspace", "usage_type", "context_window", "web_search_count",
         "inference_geo", "speed"}
    ),
    "openai": frozenset(
        {"start_time", "end_time", "start_time_iso", "end_time_iso", "project_id", "project_name",
         "num_model_requests", "user_id", "user_email", "api_key_id", "api_key_name", "model", "batch", "service_tier",
         "organization_id", "organization_name", "input_uncached_tokens", "input_text_tokens", "output_text_tokens",
         "input_cached_text_tokens", "input_audio_tokens", "input_cached_audio_tokens", "output_audio_tokens",
         "input_image_tokens", "input_cached_image_tokens", "output_image_tokens"}
    ),
}  # fmt: skip
"""Columns that are known and are none of the buckets: parts of one, or no tokens."""


def read(text: str) -> Export:
    """Raises Stop: `export_unknown`, `export_broken`, `export_empty`."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    columns = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    provider = _provider(columns)
    buckets = _ANTHROPIC if provider == "anthropic" else _OPENAI
    missing = [name for name in buckets if name not in columns]
    if missing:
        raise Stop("export_broken", f"the export has no column {', '.join(missing)}: export usage with every column")
    found = Export(provider, requests={} if "num_model_requests" in columns else None)
    strange: set[str] = set()
    for number, row in enumerate(reader, start=2):
        if not any(row.values()):
            continue
        if None in row:
            raise Stop("export_broken", f"line {number} has more cells than the head has columns")
        _take(found, row, buckets, number)
        known = _NO_TOKENS[provider]
        strange |= {name for name in columns if name not in buckets and name not in known and (row[name] or "").strip()}
    if not found.tokens:
        raise Stop("export_empty", "the export holds no line with tokens: choose a range in which something was sent")
    found.unknown = tuple(sorted(strange))
    return found


def _provider(columns: Sequence[str]) -> str:
    if "usage_input_tokens_no_cache" in columns:
        return "anthropic"
    if "input_tokens" in columns and "start_time_iso" in columns:
        return "openai"
    raise Stop(
        "export_unknown", "this is neither Anthropic's nor OpenAI's export: of usage its head must name"
        " usage_input_tokens_no_cache, or start_time_iso and input_tokens; of costs usage_date_utc and cost_usd, or"
        " start_time_iso and amount_value", Exit.WRONG_USE,
    )  # fmt: skip


def _take(found: Export, row: Mapping[str, str | None], buckets: Mapping[str, str], number: int) -> None:
    anthropic = found.provider == "anthropic"
    model = (row["model_version" if anthropic else "model"] or "").strip()
    counts = {bucket: _count(row[name], name, number) for name, bucket in buckets.items()}
    if not anthropic:
        counts["input"] -= counts["cache_read"]
        if counts["input"] < 0:
            raise Stop("export_broken", f"line {number}: more tokens were cached than were sent")
    if not model and not any(counts.values()):
        return  # OpenAI lists days without a request too
    key = (day(row["usage_date_utc" if anthropic else "start_time_iso"], number), model or "(no model)")
    into = found.tokens.setdefault(key, dict.fromkeys(BUCKETS, 0))
    for bucket, count in counts.items():
        into[bucket] += count
    if found.requests is not None:
        found.requests[key] = found.requests.get(key, 0) + _count(
            row["num_model_requests"], "num_model_requests", number
        )


def _count(text: str | None, name: str, number: int) -> int:
    clean = (text or "").strip().replace(",", "")
    if not clean:
        return 0
    try:
        value = float(clean)
    except ValueError as error:
        raise Stop("export_broken", f"line {number}, {name}: '{clean[:40]}' is no number") from error
    if value < 0 or value != int(value):
        raise Stop("export_broken", f"line {number}, {name}: {clean[:40]} is no count of tokens")
    return int(value)


def day(text: str | None, number: int) -> date:
    """In UTC. Raises Stop `export_broken`."""
    clean = (text or "").strip()
    try:
        moment = datetime.fromisoformat(clean)
    except ValueError as error:
        raise Stop("export_broken", f"line {number}: '{clean[:40]}' is no date") from error
    return moment.astimezone(UTC).date() if moment.tzinfo else moment.date()
