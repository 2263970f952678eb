"""Owns `show --context`: what the model sees of a session, measured, and each decision about its past in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from api.cli import pages, safe, screen
from api.cli.client import Client

Row = dict[str, Any]
MOST_REDUCTIONS = 20
_WORDS = {
    "prompt": "prompt", "room": "line", "floor": "floor", "drop": "would leave out", "stubs": "in stubs",
    "behind": "behind the first", "middle": "middle", "middle_behind": "behind the head", "r": "read price",
    "w": "write price", "ttl": "ttl", "gap_s": "gap s", "cold": "cold", "meter": "carried",
    "edit_price": "a prune costs", "compact_meter": "carried for a summary", "compact_price": "a summary costs",
    "idle_s": "idle after s", "idle_from": "idle from", "remembered": "put into memory",
    "hold_5m": "hold 5m", "hold_1h": "hold 1h", "wrote_tokens": "writes a call", "regrow_to": "regrow to",
}  # fmt: skip
"""Of the arithmetic's names; what is not here is shown under its own."""


def read(client: Client, session: str) -> Row:
    path = f"/v1/sessions/{quote(session, safe='')}"
    found: Row = client.get(f"{path}/context")
    return {
        "session": client.get(path),
        "context": found,
        "reductions": list(pages.rows(client, f"{path}/reductions", limit=MOST_REDUCTIONS)),
    }


def told(found: Row) -> Iterator[str]:
    """The whole view as lines."""
    context, session = found["context"], found["session"]
    learned = f" ({context['window_source']})" if context["window_source"] != "catalogue" else ""
    guess = learned if context["window_known"] else " (assumed: this model is not known here)"
    yield f"{context['model']} · window {context['window']:,}{guess} · reduced from {context['line']:,} tokens on"
    how = "as the last bill has it" if context["calibrated"] else "estimated: nothing was billed yet"
    yield f"{context['tokens']:,} tokens now, {_share(context['tokens'], context['window'])} of the window, {how}"
    for line in context["advice"]:
        yield f"! {line}"
    yield ""
    yield from _floor(context)
    yield from _standing(context)
    yield ""
    yield from _row_of(session)
    yield ""
    reductions: Sequence[Row] = found["reductions"]
    yield f"decisions, newest first ({len(reductions)} shown)" if reductions else "no decision about the past yet"
    for one in reductions:
        yield from decision(one)


def _floor(context: Row) -> Iterator[str]:
    floor = context["floor"]
    share = f"{floor['share']:.1%} of the window"
    yield f"floor     {floor['tokens']:>10,}  tools and system prompt: {share}, never reduced"
    for part in floor["parts"]:
        yield f"          {part['tokens']:>10,}  {part['name']}"


def _standing(context: Row) -> Iterator[str]:
    counted = context["messages"]
    yield (
        f"messages  {context['message_tokens']:>10,}  {counted['live']:,} stand as they are, "
        f"{counted['summarised']:,} are summarised, {counted['rewound']:,} taken back"
    )
    for one in context["summaries"]:
        before = f" of {one['tokens_before']:,} then" if one.get("tokens_before") is not None else ""
        yield (
            f"          {one['tokens']:>10,}  summary {one['edit']} for messages {one['first']} to {one['last']}"
            f"{before} ({one['cause']}): {safe.line(one['text'], 60)}"
        )
    if context["stubs"]:
        newest: Row = context["newest_stubs"][-1]
        line = safe.line(newest["text"], 70)
        yield f"                      {context['stubs']:,} blocks are stubs, the newest: {line}"
    for one in context["rewinds"]:
        yield (
            f"                      rewind {one['edit']} took back {one['messages']:,} messages, {one['first']} to "
            f"{one['last']}, at {screen.when(one['created_at'])}"
        )


def _row_of(session: Row) -> Iterator[str]:
    cache, meters, breaker, known = (session[name] for name in ("cache", "meters", "breaker", "calibration"))
    warm = f"warm until {screen.when(cache['warm_until'])}" if cache["warm_until"] else "cold"
    kept = f", kept warm ({cache['warm_pings']} pings)" if cache["keep_warm"] else ""
    yield f"cache     {warm}, ttl {cache['ttl']}{kept}"
    yield (
        f"meters    {meters['meter']:,.0f} carried, {meters['compact_meter']:,.0f} for a summary; junk "
        f"{meters['junk_tokens']:,}, writes {meters['wrote_tokens']:,.0f} a call, hold {meters['hold_5m']:.3f} (5m) "
        f"{meters['hold_1h']:.3f} (1h), next warm prune from {meters['regrow_to']:,}"
    )
    if known["billed"] is not None:
        corrected = "" if known["corrected_ratio"] is None else f", {known['corrected_ratio']:.3f} corrected"
        yield f"estimate  {known['raw_ratio']:.3f} of the bill raw{corrected} ({known['billed']:,} billed)"
    blocked = f", blocked since {screen.when(breaker['blocked_at'])}" if breaker["blocked_at"] else ""
    due = ", a verdict is due" if breaker["verdict_due"] else ""
    yield (
        f"breaker   {breaker['ineffective_strikes']} ineffective, {breaker['fallback_streak']} without the model"
        f"{blocked}{due}"
    )


def decision(one: Row) -> Iterator[str]:
    """One reduction: what, why, from how much to how much; then the numbers it was decided by."""
    before, after = one.get("tokens_before"), one.get("tokens_after")
    sizes = f" · {before:,} → {after:,} tokens" if before is not None and after is not None else ""
    yield f"  {screen.when(one['created_at'])} {one['decision']} ({one['cause']}) at step {one['step']}{sizes}"
    yield f"      {arithmetic(one['arithmetic'])}"


def arithmetic(found: Mapping[str, object]) -> str:
    """`name value` in the order in which they were written; nested values under both names."""
    return safe.line(" · ".join(f"{name} {_figure(value)}" for name, value in _flat(found)), 2_000)


def _flat(found: Mapping[str, object], head: str = "") -> Iterator[tuple[str, object]]:
    for name, value in found.items():
        word = f"{head}{_WORDS.get(name, name.replace('_', ' '))}"
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, object]", value), f"{word} ")
        elif value is not None:
            yield word, value


def _figure(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"
        case _:
            return str(value)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
