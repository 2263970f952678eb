"""When cron fires: both nights of a clock change in several zones, leap days, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import cron
from shared.errors import Refused


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def fired(expression: str, zone: str, after: str, n: int) -> list[str]:
    """Local times with their offset, as `explain` shows them."""
    return [i.local.isoformat(timespec="minutes") for i in cron.explain(expression, zone, at(after), n)]


LORD_HOWE, SAO_PAULO = "Australia/Lord_Howe", "America/Sao_Paulo"
NIGHTS = [
    # Berlin falls back on 2026-10-25 at 03:00 and springs forward on 2027-03-28 at 02:00.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+02:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00+01:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:30+02:00"]),
    ("0 3 * * *", "Europe/Berlin", "2027-03-27T12:00+01:00", ["2027-03-28T03:00+02:00", "2027-03-29T03:00+02:00"]),
    # Asked during the second 02:10: the first 02:30 is past, and there is no second one.
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10+01:00", ["2026-10-26T02:30+01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10+02:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    ("30 2 * * *", "Europe/Berlin", "2027-03-28T03:00+02:00", ["2027-03-29T02:30+02:00"]),
    # Several times in the gap are one instant after it; several in the repeated hour fire once each.
    ("*/20 2 * * *", "Europe/Berlin", "2027-03-27T12:00+01:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:00+02:00"]),
    (
        "*/20 2 * * *", "Europe/Berlin", "2026-10-24T12:00+02:00",
        ["2026-10-25T02:00+02:00", "2026-10-25T02:20+02:00", "2026-10-25T02:40+02:00", "2026-10-26T02:00+01:00"],
    ),
    # An hourly job runs each hour that passes.
    (
        "30 * * * *", "Europe/Berlin", "2026-10-25T01:00+02:00",
        ["2026-10-25T01:30+02:00", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00", "2026-10-25T03:30+01:00"],
    ),
    (
        "30 * * * *", "Europe/Berlin", "2026-10-25T02:40+02:00",
        ["2026-10-25T02:30+01:00", "2026-10-25T03:30+01:00"],
    ),
    (
        "30 * * * *", "Europe/Berlin", "2027-03-28T01:00+01:00",
        ["2027-03-28T01:30+01:00", "2027-03-28T03:30+02:00", "2027-03-28T04:30+02:00"],
    ),
    (
        "*/30 * * * *", "Europe/Berlin", "2026-10-25T02:15+02:00",
        ["2026-10-25T02:30+02:00", "2026-10-25T02:00+01:00", "2026-10-25T02:30+01:00", "2026-10-25T03:00+01:00"],
    ),
    # Every second hour, by the wall clock: nothing is skipped in spring, nothing is doubled in autumn.
    (
        "0 */2 * * *", "Europe/Berlin", "2027-03-27T23:30+01:00",
        ["2027-03-28T00:00+01:00", "2027-03-28T03:00+02:00", "2027-03-28T04:00+02:00"],
    ),
    (
        "0 */2 * * *", "Europe/Berlin", "2026-10-25T00:30+02:00",
        ["2026-10-25T02:00+02:00", "2026-10-25T04:00+01:00"],
    ),
    # Lord Howe shifts by half an hour: back on 2026-04-05 at 02:00 to 01:30, forward on 2026-10-04 at 02:00 to 02:30.
    ("45 1 * * *", LORD_HOWE, "2026-04-04T12:00+11:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
    ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00+10:30", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
    (
        "30 * * * *", LORD_HOWE, "2026-10-04T01:00+10:30",
        ["2026-10-04T01:30+10:30", "2026-10-04T02:30+11:00", "2026-10-04T03:30+11:00"],
    ),
    # Sao Paulo skipped midnight on 2018-11-04 and repeated 23:00 on 2019-02-16; it has had one offset since.
    ("0 0 * * *", SAO_PAULO, "2018-11-03T12:00-03:00", ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"]),
    ("30 23 * * *", SAO_PAULO, "2019-02-16T12:00-02:00", ["2019-02-16T23:30-02:00", "2019-02-17T23:30-03:00"]),
    ("0 0 * * *", SAO_PAULO, "2026-11-03T12:00-03:00", ["2026-11-04T00:00-03:00", "2026-11-05T00:00-03:00"]),
    ("15 6 * * *", "Asia/Kathmandu", "2026-11-30T00:00+00:00", ["2026-11-30T06:15+05:45", "2026-12-01T06:15+05:45"]),
    ("30 2 * * *", "UTC", "2026-10-24T12:00+00:00", ["2026-10-25T02:30+00:00", "2026-10-26T02:30+00:00"]),
    ("0 12 29 2 *", "UTC", "2026-01-01T00:00+00:00", ["2028-02-29T12:00+00:00", "2032-02-29T12:00+00:00"]),
    ("0 9 * * 1-5", "Europe/Berlin", "2026-11-27T12:00+01:00", ["2026-11-30T09:00+01:00", "2026-12-01T09:00+01:00"]),
    ("@daily", "UTC", "2026-11-30T00:00+00:00", ["2026-12-01T00:00+00:00", "2026-12-02T00:00+00:00"]),
    ("@Hourly", "Asia/Kathmandu", "2026-11-30T00:00+00:00", ["2026-11-30T06:00+05:45", "2026-11-30T07:00+05:45"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "after", "expected"), NIGHTS)
def test_an_expression_fires_at_these_instants(expression: str, zone: str, after: str, expected: list[str]) -> None:
    assert fired(expression, zone, after, len(expected)) == expected


REFUSED = [
    ("30 2 30 2 *", "UTC", "cron_never_fires"),
    ("0 0 31 4,6 *", "UTC", "cron_never_fires"),
    ("61 2 * * *", "UTC", "cron_invalid"),
    ("0 0 32 * *", "UTC", "cron_invalid"),
    ("0 0 1 13 *", "UTC", "cron_invalid"),
    ("0 0 * * mo", "UTC", "cron_invalid"),
    ("*/0 * * * *", "UTC", "cron_invalid"),
    ("0 30 2 * * *", "UTC", "cron_invalid"),
    ("30 2 * *", "UTC", "cron_invalid"),
    ("", "UTC", "cron_invalid"),
    ("@reboot", "UTC", "cron_invalid"),
    ("1,2,3 " * 60, "UTC", "cron_invalid"),
    ("\u0663\u0660 2 * * *", "UTC", "cron_invalid"),
    ("30 2 * * *", "Europe/Atlantis", "zone_unknown"),
    ("30 2 * * *", "../../etc/passwd", "zone_unknown"),
    ("30 2 * * *", "", "zone_unknown"),
    ("30 2 * * *", "Europe", "zone_unknown"),
    ("30 2 * * *", "CET\0", "zone_unknown"),
]


@pytest.mark.parametrize(("expression", "zone", "code"), REFUSED)
def test_a_bad_expression_is_refused_with_its_code_and_a_sentence(expression: str, zone: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        cron.parse(expression, zone)
    assert refused.value.code == code
    assert len(refused.value.message) > 30


def test_six_fields_are_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match=r"five fields .* has 6 \(a field for seconds is not supported\)"):
        cron.parse("0 30 2 * * *", "UTC")


def test_the_latest_missed_instants_of_a_month_are_found_without_walking_the_month() -> None:
    since, until = at("2026-10-01T00:00+00:00"), at("2026-11-01T00:00:30+00:00")
    assert cron.last_instants("* * * * *", "UTC", since, until, 3) == (
        at("2026-10-31T23:58+00:00"), at("2026-10-31T23:59+00:00"), at("2026-11-01T00:00+00:00"),
    )  # fmt: skip
    assert cron.last_instants("0 6 * * 1", "UTC", since, until, 2) == (
        at("2026-10-19T06:00+00:00"), at("2026-10-26T06:00+00:00"),
    )  # fmt: skip
    assert cron.last_instants("0 6 1 1 *", "UTC", since, until, 2) == ()
    assert cron.last_instants("0 0 1 10 *", "UTC", since, until, 5) == (since,)


ZONES = st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "UTC"])
EXPRESSIONS = st.builds(
    "{} {} * * *".format,
    st.sampled_from(["0", "30", "*/20", "5,50", "*"]),
    st.sampled_from(["*", "2", "1-3", "0,23", "*/2"]),
)


@given(EXPRESSIONS, ZONES, st.integers(0, 366 * 24 * 60))
def test_going_on_from_each_instant_gives_the_same_as_one_walk(expression: str, zone: str, minutes: int) -> None:
    start = at("2018-06-01T00:00+00:00") + timedelta(minutes=minutes)
    walk = cron.next_instants(expression, zone, start, 6)
    one_by_one: list[datetime] = []
    after = start
    for _ in range(6):
        (after,) = cron.next_instants(expression, zone, after, 1)
        one_by_one.append(after)
    assert tuple(one_by_one) == walk
    assert all(later > earlier for earlier, later in zip((start, *walk), walk, strict=False))
