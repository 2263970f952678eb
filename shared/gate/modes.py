"""What comes of a call that needs a person, by profile and kind of session, as the settings say it."""

from __future__ import annotations

from shared.errors import SettingsError
from shared.gate.policy import Mode, Policy
from shared.settings import Settings

_NAME = "NIGHTSHIFT_GATE_MODES"
_OF_JOB = {Mode.ASK: Mode.PARK}
"""Of a job nobody is there to be asked: it waits in the inbox. Never an automatic yes."""


def parse(setting: str) -> dict[str, Mode]:
    """`profile=mode` with commas between; `*` is every profile that is not named. Raises SettingsError."""
    found: dict[str, Mode] = {}
    for part in filter(None, (word.strip() for word in setting.split(","))):
        profile, equals, mode = (word.strip() for word in part.partition("="))
        if not equals or not profile or mode not in ("ask", "park", "deny"):
            raise SettingsError(f"{_NAME}: '{part}' is not 'profile=ask', 'profile=park' or 'profile=deny'")
        if profile in found:
            raise SettingsError(f"{_NAME}: '{profile}' is named twice")
        found[profile] = Mode(mode)
    return found


def entries(setting: str) -> tuple[str, ...]:
    """Commands by their first words, with commas between; `*` stands for any one word."""
    return tuple(" ".join(part.split()) for part in setting.split(",") if part.strip())


def policy(settings: Settings, profile: str, *, is_job: bool) -> Policy:
    """The rules of a session, without what was granted. Raises SettingsError."""
    by_profile = parse(settings.gate_modes)
    mode = by_profile.get(profile, by_profile.get("*", Mode.ASK))
    return Policy(
        mode=_OF_JOB.get(mode, mode) if is_job else mode,
        denied=entries(settings.gate_deny),
        allowed=entries(settings.gate_allow),
    )
