"""Which hosts a run may reach is said by the setting, and by the profile of its session alone."""

from __future__ import annotations

import pytest

from shared.sandbox import hosts


@pytest.mark.parametrize(
    ("setting", "profile", "opened"),
    [
        ("", "night", ""),
        ("a.org, *.b.org", "night", "a.org,*.b.org"),
        ("a.org, night=b.org", "night", "a.org,b.org"),
        ("a.org, night=b.org", "day", "a.org"),
        ("a.org, night=b.org", "", "a.org"),
        ("=b.org", "", ""),
        ("night=, ,", "night", ""),
    ],
)
def test_which_hosts_a_profile_opens(setting: str, profile: str, opened: str) -> None:
    assert hosts.of_profile(setting, profile) == opened
