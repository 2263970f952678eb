"""Which hosts a run may reach, by the profile of its session, as the setting `sandbox_hosts` says it. Pure."""

from __future__ import annotations


def of_profile(setting: str, profile: str) -> str:
    """Hosts with commas between, none if empty: those that are named for every profile, and after `profile=` those of
    this one. What is named for another profile is none of these, and a run of which no profile is known has only the
    former."""
    found: list[str] = []
    for part in setting.split(","):
        whose, equals, host = (word.strip() for word in part.rpartition("="))
        if host and (not equals or (profile and whose == profile)):
            found.append(host)
    return ",".join(found)
