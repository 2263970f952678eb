"""Owns `ledger reconcile`: our tokens, or our dollars, against a provider's own export, by day, model and kind, each
drift with what may be its cause."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from api.cli import costs, exports, pages, safe, screen
from api.cli.client import Client
from api.cli.costs import Costs
from api.cli.exits import Exit, Stop
from api.cli.exports import BUCKETS, Export, Key

MOST_BYTES = 50_000_000
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
"""Of a version, behind a model's name. Any other number there is part of the name."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One kind of token of one model on one day, or its dollars, that the two do not agree on. `drift` is theirs less
    ours."""

    day: str
    model: str
    kind: str
    ours: float
    theirs: float
    drift: float
    why: str


def reconcile(client: Client, asked: argparse.Namespace) -> Exit:
    """Exit 1 where they differ. Raises Stop for a file that is none, or holds columns that nobody here knows."""
    text = _text(Path(asked.file))
    export = costs.read(text) or exports.read(text)
    if export.unknown and not asked.ignore_unknown:
        names = ", ".join(safe.line(name, 60) for name in export.unknown[:10])
        text = f"the export has columns that nobody here knows and that may hold tokens: {names}"
        raise Stop("export_columns_unknown", f"{text}: look what they are, then leave them out with --ignore-unknown")
    since, until = export.days
    found = list(pages.items(client.get("/v1/ledger/usage", since=since.isoformat(), until=until.isoformat())))
    drifts = compare(export, found) if isinstance(export, Export) else compare_costs(export, found)
    if asked.json:
        screen.as_json({"provider": export.provider, "since": since.isoformat(), "until": until.isoformat(),
                        "agrees": not drifts, "drifts": [asdict(one) for one in drifts]})  # fmt: skip
    else:
        _tell(export, drifts, since, until)
    return Exit.FAILED if drifts else Exit.DONE


def compare(export: Export, rows: Sequence[Mapping[str, Any]]) -> list[Drift]:
    """Every bucket on which they differ. Models are theirs where one name begins with the other (a dated version)."""
    ours = _ours(export, rows)
    found: list[Drift] = []
    for key in sorted({*export.tokens, *ours}):
        day, model = key
        mine, theirs = ours.get(key), export.tokens.get(key)
        for bucket in BUCKETS:
            here, there = (mine or {}).get(bucket, 0), (theirs or {}).get(bucket, 0)
            if here != there:
                why = _why(mine, theirs, here, there, None if export.requests is None else export.requests.get(key, 0))
                found.append(Drift(day.isoformat(), model, bucket, here, there, there - here, why))
    return found


DOLLARS = "usd"
EXACT = 0.000001
"""Sums of ours are floats by then."""


def compare_costs(export: Costs, rows: Sequence[Mapping[str, Any]]) -> list[Drift]:
    """Every day and model whose dollars differ by more than the rounding of the export's lines allows."""
    ours: dict[Key, tuple[float, int, int]] = {}
    for row in rows:
        day = date.fromisoformat(row["day"])
        named = [name for at, name in export.usd if at == day]
        model = costs.EVERY_MODEL if costs.EVERY_MODEL in named else _named(row["model"], named)
        if row["provider"] == export.provider or (model in named and model != costs.EVERY_MODEL):
            spent, (usd, unknown, assumed) = row["spent"], ours.get((day, model), (0.0, 0, 0))
            told = (unknown + spent["unknown_calls"], assumed + spent["assumed_calls"])
            ours[day, model] = (usd + spent["known_usd"], *told)
    found: list[Drift] = []
    for key in sorted({*export.usd, *ours}):
        mine, theirs = ours.get(key), export.usd.get(key)
        here, there = mine[0] if mine else 0.0, float(theirs or 0)
        if abs(there - here) > float(export.rounded.get(key, 0)) + EXACT:
            why = _why_dollars(key[1], mine, theirs is not None, more=there > here)
            found.append(Drift(key[0].isoformat(), key[1], DOLLARS, here, there, there - here, why))
    return found


def _why_dollars(model: str, mine: tuple[float, int, int] | None, listed: bool, *, more: bool) -> str:
    if model == costs.NO_TOKENS:
        return "searches or code that the provider ran: the ledger counts tokens"
    if mine is None:
        return _STRANGE
    if not listed:
        return _ABSENT
    causes = [
        f"{count} calls {text}"
        for count, text in ((mine[1], "have a cost that we do not know"), (mine[2], "were cut or lost and are assumed"))
        if count
    ]
    dearer = "dearer" if more else "cheaper"
    return "; ".join(causes) or f"{dearer} there: compare usage; if that agrees, prices differ (setting `prices`)"


_STRANGE = "no call of ours: another program uses this provider's account"
_ABSENT = "not in the export: another account or workspace, or the export ends earlier"


def _ours(export: Export, rows: Sequence[Mapping[str, Any]]) -> dict[Key, dict[str, int]]:
    """By the export's names of models. Writes to a cache that an export does not tell are part of its input."""
    into: dict[Key, dict[str, int]] = {}
    for row in rows:
        day = date.fromisoformat(row["day"])
        model = _named(row["model"], [name for at, name in export.tokens if at == day])
        if row["provider"] != export.provider and model not in {name for _, name in export.tokens}:
            continue
        spent, tokens = row["spent"], row["spent"]["tokens"]
        counts = {
            "input": tokens["input"], "output": tokens["output"], "cache_read": tokens["cache_read"],
            "cache_write_5m": spent["cache_write_5m"], "cache_write_1h": spent["cache_write_1h"],
            "calls": spent["calls"], "assumed": spent["assumed_calls"], "unknown": spent["unknown_calls"],
        }  # fmt: skip
        if export.provider == "openai":
            counts["input"] += counts["cache_write_5m"] + counts["cache_write_1h"]
            counts["cache_write_5m"] = counts["cache_write_1h"] = 0
        sums = into.setdefault((day, model), dict.fromkeys(counts, 0))
        for name, count in counts.items():
            sums[name] += count
    return into


def _named(model: str, theirs: Sequence[str]) -> str:
    if model in theirs:
        return model
    same = [name for name in theirs if _DATE.sub("", name) == _DATE.sub("", model)]
    return same[0] if len(same) == 1 else model


def _why(mine: dict[str, int] | None, theirs: dict[str, int] | None, here: int, there: int, asked: int | None) -> str:
    if mine is None:
        return _STRANGE
    if theirs is None:
        return _ABSENT
    causes: list[str] = []
    if mine["unknown"]:
        causes.append(f"{mine['unknown']} calls told us no usage that was believed")
    if mine["assumed"]:
        causes.append(f"{mine['assumed']} calls were cut or lost and are assumed")
    if asked is not None and asked != mine["calls"]:
        causes.append(f"{asked} requests there, {mine['calls']} calls here")
    if not causes:
        causes.append(
            "more there: another program may use this account" if there > here else "more here: look at replays"
        )
    return "; ".join(causes)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Stop("export_too_large", f"the export is larger than {MOST_BYTES // 1_000_000} MB: export fewer days")
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise Stop("export_unknown", f"{path} is no text in UTF-8: export CSV", Exit.WRONG_USE) from error
    except OSError as error:
        raise Stop("file_unreadable", f"{path}: {error.strerror}", Exit.WRONG_USE) from error


def _tell(export: Export | Costs, drifts: Sequence[Drift], since: date, until: date) -> None:
    days = since.isoformat() if since == until else f"{since} to {until}"
    if not drifts:
        what = "every kind of token agrees, by day and model"
        if isinstance(export, Costs):
            what = "every dollar agrees, by day and model, as far as the export's lines are rounded"
        screen.say(f"{export.provider}, {days}: {what}")
        return
    rows = [(one.day, safe.line(one.model, 60), one.kind, *_amounts(one), one.why) for one in drifts]
    screen.table(("day", "model", "kind", "ours", "theirs", "drift", "why"), rows, right=("ours", "theirs", "drift"))


def _amounts(one: Drift) -> tuple[str, str, str]:
    if one.kind == DOLLARS:
        sign = "-" if one.drift < 0 else "+"
        return screen.money(one.ours), screen.money(one.theirs), f"{sign}{screen.money(abs(one.drift))}"
    return screen.count(one.ours), screen.count(one.theirs), f"{one.drift:+,}"
