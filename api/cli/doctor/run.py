"""Runs the checks and prints what they found. Exit 1 where one failed; a check that breaks is a failure of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from api.cli import connection, screen
from api.cli.doctor import database, extensions, keys, machine, pooled, services
from api.cli.doctor.finding import Check, Facts, Finding, State, failed
from api.cli.exits import Exit, Stop
from shared import demands, settings
from shared.errors import SettingsError

CHECKS: tuple[Check, ...] = (
    machine.python,
    machine.programs,
    machine.sandbox,
    machine.disk,
    machine.servers,
    extensions.secrets,
    keys.keys,
    extensions.tool_servers,
    extensions.installed_hooks,
    extensions.content_trace,
    database.database,
    pooled.direct,
    services.broker,
    services.api,
    services.fleet,
    services.provider,
)


def doctor(asked: argparse.Namespace) -> Exit:
    """Every part, in the order in which one stands on the other."""
    try:
        known = facts()
    except Stop as stop:
        findings = [failed("settings", stop.message, "correct it, then run `nightshift doctor` again")]
    else:
        findings = list(examine(known, CHECKS))
    broken = any(finding.state is State.FAILED for finding in findings)
    if asked.json:
        screen.as_json({"ok": not broken, "checks": [finding.row() for finding in findings]})
    else:
        _print(findings)
    return Exit.FAILED if broken else Exit.DONE


def examine(known: Facts, checks: Iterable[Check]) -> Iterable[Finding]:
    for check in checks:
        try:
            yield from check(known)
        except Exception as error:  # noqa: BLE001 - a part may be broken in a way nobody thought of; the rest is still told
            yield failed(check.__name__, f"{type(error).__name__}: {error}", "this check itself broke: report it")


def facts() -> Facts:
    """From settings where they name a part, else from the running stack. Raises Stop for a wrong setting."""
    home = connection.home()
    try:
        found = settings.load({**os.environ, "NIGHTSHIFT_HOME": str(home)})
        demands.parse(found.approve_tools, demands.TOOLS)
    except SettingsError as error:
        raise Stop(error.code, error.message, Exit.WRONG_USE) from error
    stack = connection.stack() or {}
    is_local = not found.url or found.url == stack.get("url")
    told = stack if is_local else {}
    database_url = found.database_url or str(told.get("database_url", ""))
    return Facts(
        home=home,
        settings=found,
        url=(found.url or str(told.get("url", ""))).rstrip("/"),
        token=found.token or str(told.get("token", "")),
        database_url=database_url,
        direct_url=found.direct_url or str(told.get("database_direct_url") or database_url),
        redis_url=found.redis_url or str(told.get("redis_url", "")),
        provider_url=str(told.get("provider_url") or "") or found.provider_base_url,
        is_rehearsal=bool(told["rehearsal"]) if "rehearsal" in told else (found.rehearsal or None),
        stack=stack or None,
    )


def _print(findings: list[Finding]) -> None:
    colours = {State.OK: "32", State.FAILED: "31", State.NOTE: "2"}
    width = max(len(finding.part) for finding in findings)
    for finding in findings:
        state = finding.state.value.upper() if finding.state is State.FAILED else finding.state.value
        mark = f"{state:<6}"
        if screen.has_colour():
            mark = f"\x1b[{colours[finding.state]}m{mark}\x1b[0m"
        print(f"{mark} {finding.part:<{width}}  {screen.plain(finding.seen)}")
        if finding.mend:
            print(f"{'':6} {'':<{width}}  mend: {screen.plain(finding.mend)}")
    count = sum(finding.state is State.FAILED for finding in findings)
    print(f"{count} of {len(findings)} failed" if count else "all in order")
