"""When a cron expression fires in a zone: pure, and the same for the API, the command line and the scheduler.

The invariant: an expression that names its hours follows the wall clock, so a time that comes twice fires once (the
first) and a time that does not come fires at the first instant after the gap. One that runs in every hour fires
whenever the clock shows it. Source of the fields: cron(5), as the library `cronsim` reads them; aliases are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from shared.errors import Refused

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
_LONGEST = 200
_SHIFT = timedelta(hours=3)
"""More than any clock change of our time; around one, generation begins this much earlier and drops what is past."""
_WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 25, 24 * 32, 24 * 367, 24 * 366 * 9))


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid expression in its five fields, and its zone. Made by `parse` alone."""

    fields: str
    zone: ZoneInfo
    every_hour: bool


@dataclass(frozen=True, slots=True)
class Instant:
    """One due instant, as people there see it and as the database keeps it."""

    local: datetime
    utc: datetime


def parse(expression: str, zone: str) -> Cron:
    """Raises Refused: `zone_unknown`, `cron_invalid`, `cron_never_fires`; the sentence says what to change."""
    tz = _zone(zone)
    words = _words(expression)
    try:
        sim = CronSim(" ".join(words), datetime(2000, 1, 1))  # noqa: DTZ001 - wall time: the zone comes in below
    except CronSimError as error:
        raise _refusal(expression, words, error) from error
    every_hour = sim.hours == set(range(24))
    cron = Cron(" ".join(words), tz, every_hour)
    if next(_wall_times(cron, datetime(2024, 1, 1)), None) is None:  # noqa: DTZ001 - as above
        raise _never(expression)
    return cron


def next_instants(expression: str, zone: str, after: datetime, n: int) -> tuple[datetime, ...]:
    """The next `n` instants later than `after`, in UTC and in order. Raises as `parse`."""
    return tuple(islice(instants(parse(expression, zone), after), n))


def last_instants(expression: str, zone: str, since: datetime, until: datetime, n: int) -> tuple[datetime, ...]:
    """The latest `n` instants from `since` to `until`, both included, in UTC and in order. Raises as `parse`."""
    cron = parse(expression, zone)
    moment = timedelta(seconds=1)
    found: list[datetime] = []
    for window in _WINDOWS:
        begin = max(since - moment, until - window)
        found = []
        for instant in instants(cron, begin):
            if instant > until:
                break
            if instant >= since:
                found.append(instant)
        if len(found) >= n or begin <= since:
            break
    return tuple(found[-n:])


def explain(expression: str, zone: str, after: datetime, n: int) -> tuple[Instant, ...]:
    """The next `n` instants in local time and UTC. Raises as `parse`."""
    cron = parse(expression, zone)
    return tuple(Instant(at.astimezone(cron.zone), at) for at in islice(instants(cron, after), n))


def instants(cron: Cron, after: datetime) -> Iterator[datetime]:
    """Every instant later than `after`, in UTC, strictly rising. Ends where cron can see no further one."""
    last = after.astimezone(UTC)
    local = last.astimezone(cron.zone)
    calm = local.utcoffset() == (last - _SHIFT).astimezone(cron.zone).utcoffset()
    calm = calm and local.utcoffset() == (last + _SHIFT).astimezone(cron.zone).utcoffset()
    start = local.replace(tzinfo=None, fold=0) - (timedelta(0) if calm else _SHIFT)
    times = _wall_times(cron, start)
    for instant in _elapsed(times, cron.zone) if cron.every_hour else _on_the_wall(times, cron.zone):
        if instant > last:
            last = instant
            yield instant


def _wall_times(cron: Cron, start: datetime) -> Iterator[datetime]:
    try:
        yield from CronSim(cron.fields, start)
    except (OverflowError, ValueError):  # beyond the year 9999
        return


def _on_the_wall(times: Iterator[datetime], zone: ZoneInfo) -> Iterator[datetime]:
    """Each wall time once: the first of two, or the first instant after a gap."""
    for time in times:
        moved = time
        while _is_skipped(moved, zone):
            moved += timedelta(minutes=1)
        yield moved.replace(tzinfo=zone).astimezone(UTC)


def _elapsed(times: Iterator[datetime], zone: ZoneInfo) -> Iterator[datetime]:
    """Each instant at which the clock shows such a time: a repeated hour twice, a skipped one never."""
    again: list[datetime] = []
    for time in times:
        if _is_skipped(time, zone):
            continue
        first = time.replace(tzinfo=zone)
        second = first.replace(fold=1)
        if first.utcoffset() == second.utcoffset():
            yield from again
            again = []
        else:
            again.append(second.astimezone(UTC))
        yield first.astimezone(UTC)


def _is_skipped(time: datetime, zone: ZoneInfo) -> bool:
    there = time.replace(tzinfo=zone)
    return there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != time


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Refused(
            f"'{name[:100]}' is not an IANA time zone: write one such as Europe/Berlin or UTC", code="zone_unknown"
        ) from error


def _words(expression: str) -> list[str]:
    """Five fields, aliases resolved."""
    text = expression.strip()
    if text.startswith("@"):
        resolved = ALIASES.get(text.lower())
        if resolved is None:
            raise Refused(
                f"'{text[:50]}' is not an alias: use one of {', '.join(sorted(ALIASES))}, or five fields",
                code="cron_invalid",
            )
        return resolved.split()
    words = text.split()
    if len(text) > _LONGEST or len(words) != 5:
        more = " (a field for seconds is not supported)" if len(words) == 6 else ""
        raise Refused(
            f"a cron expression has five fields ({', '.join(_FIELDS)}) and this one has {len(words)}{more}: "
            "write for example '30 6 * * 1-5'",
            code="cron_invalid",
        )
    return words


def _refusal(expression: str, words: list[str], error: CronSimError) -> Refused:
    """Told apart: a field that cannot be read, and a day that no named month has."""
    try:
        CronSim(" ".join([*words[:3], "*", words[4]]), datetime(2000, 1, 1))  # noqa: DTZ001 - wall time
    except CronSimError:
        return Refused(f"the cron expression '{expression}' cannot be read: {error}", code="cron_invalid")
    try:
        CronSim(" ".join([*words[:2], "*", *words[3:]]), datetime(2000, 1, 1))  # noqa: DTZ001 - wall time
    except CronSimError:
        return Refused(f"the cron expression '{expression}' cannot be read: {error}", code="cron_invalid")
    return _never(expression)


def _never(expression: str) -> Refused:
    return Refused(
        f"the cron expression '{expression}' never fires: no date has that day, month and day of the week",
        code="cron_never_fires",
    )
