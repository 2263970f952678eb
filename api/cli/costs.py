"""Owns what providers' exports of costs hold: CSV in, dollars by day (UTC) and model out, and how far they are rounded.
Pure.

Columns: Anthropic's console (usage_date_utc, model as it is shown, token_type, cost_usd, cost_type, …), OpenAI's
(start_time_iso, amount_value, amount_currency, line_item, …), read from files that people have published; no
provider writes them down. OpenAI names models only where the export is grouped by line item.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

from api.cli import exports
from api.cli.exits import Stop
from api.cli.exports import Key

EVERY_MODEL = "(all models)"
NO_TOKENS = "(no tokens)"
"""What is billed beside tokens: searches, code that ran there."""


@dataclass(slots=True)
class Costs:
    """`rounded`: by how much the sum of that day and model may be off, since each line was rounded as it is written."""

    provider: str
    usd: dict[Key, Decimal] = field(default_factory=dict[Key, Decimal])
    rounded: dict[Key, Decimal] = field(default_factory=dict[Key, Decimal])
    unknown: tuple[str, ...] = ()

    @property
    def days(self) -> tuple[date, date]:
        found = [day for day, _ in self.usd]
        return min(found), max(found)


_COLUMNS = {
    "anthropic": frozenset(
        {"usage_date_utc", "model", "workspace", "api_key", "usage_type", "context_window", "token_type", "cost_usd",
         "list_price_usd", "cost_type", "inference_geo", "speed", "api_key_id", "api_key_status"}
    ),
    "openai": frozenset(
        {"start_time", "end_time", "start_time_iso", "end_time_iso", "amount_value", "amount_currency", "line_item",
         "project_id", "project_name", "organization_id", "organization_name", "user_id", "user_email", "api_key_id"}
    ),
}  # fmt: skip


def provider(columns: Sequence[str]) -> str | None:
    """Whose costs these are; None where this is no export of costs."""
    if {"usage_date_utc", "cost_usd"} <= {*columns}:
        return "anthropic"
    return "openai" if {"start_time_iso", "amount_value"} <= {*columns} else None


def read(text: str) -> Costs | None:
    """None where this is no export of costs. Raises Stop: `export_broken`, `export_empty`, `export_currency`."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    columns = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    whose = provider(columns)
    if whose is None:
        return None
    found, strange = Costs(whose), set[str]()
    for number, row in enumerate(reader, start=2):
        if None in row:
            raise Stop("export_broken", f"line {number} has more cells than the head has columns")
        _take(found, {name: (row[name] or "").strip() for name in columns}, number)
        strange |= {name for name in columns if name not in _COLUMNS[whose] and (row[name] or "").strip()}
    if not found.usd:
        raise Stop("export_empty", "the export holds no line with a cost: choose a range in which something was sent")
    found.unknown = tuple(sorted(strange))
    return found


def _take(found: Costs, row: Mapping[str, str], number: int) -> None:
    """Days without a cost are lines too."""
    name = "cost_usd" if found.provider == "anthropic" else "amount_value"
    if not row[name]:
        return
    currency = row.get("amount_currency") or "usd"
    if currency.lower() != "usd":
        raise Stop("export_currency", f"line {number} is in {currency[:10]}: the ledger counts dollars")
    usd = _dollars(row[name], name, number)
    anthropic = found.provider == "anthropic"
    key = (exports.day(row["usage_date_utc" if anthropic else "start_time_iso"], number), _model(found.provider, row))
    found.usd[key] = found.usd.get(key, Decimal(0)) + usd
    exponent = usd.as_tuple().exponent
    assert isinstance(exponent, int), "what is finite has an exponent"
    found.rounded[key] = found.rounded.get(key, Decimal(0)) + Decimal(5).scaleb(min(exponent, 0) - 1)


def _model(whose: str, row: Mapping[str, str]) -> str:
    """By our spelling: Anthropic shows `Claude Haiku 4.5` and means claude-haiku-4-5."""
    if whose == "openai":
        return row.get("line_item", "").partition(", ")[0] or EVERY_MODEL
    if row.get("cost_type", "token").startswith("token"):
        return row.get("model", "").lower().replace(" ", "-").replace(".", "-") or EVERY_MODEL
    return NO_TOKENS


def _dollars(text: str, name: str, number: int) -> Decimal:
    try:
        usd = Decimal(text.replace(",", "").removeprefix("$"))
    except InvalidOperation as error:
        raise Stop("export_broken", f"line {number}, {name}: '{text[:40]}' is no number") from error
    if not usd.is_finite():
        raise Stop("export_broken", f"line {number}, {name}: '{text[:40]}' is no sum of money")
    return usd
