"""Checks of this machine: Python, programs, disk, and which servers the local stack found."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

from api.cli.doctor.finding import Facts, Finding, failed, noted, ok
from shared.sandbox import tiers

LEAST_PYTHON = (3, 11)
LEAST_FREE = 500 * 2**20


def python(_: Facts) -> list[Finding]:
    seen = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < LEAST_PYTHON:
        return [
            failed("python", seen, "Nightshift needs 3.11 or later: name one in NIGHTSHIFT_PYTHON and run ./dev up")
        ]
    return [ok("python", seen)]


def programs(_: Facts) -> list[Finding]:
    git = _version("git", "--version")
    return [
        ok("git", git)
        if git
        else failed("git", "not on the PATH", "install git: the git_log tool needs it, everything else works"),
    ]


def sandbox(known: Facts) -> list[Finding]:
    """How strong a wall there is for commands and code, tried as a worker tries it."""
    way, wanted = tiers.probe(), tiers.Tier(known.settings.sandbox_tier)
    python = way.python or "no Python for run_code"
    with_what = f" by bubblewrap from {way.origin}" if way.origin else ""
    seen = f"{way.tier}{with_what}, {python}{f'; {way.why}' if way.why else ''}"
    if way.tier is tiers.Tier.NONE or not way.tier.holds(wanted):
        mend = "terminal and run_code are not offered here: " + (
            "allow user namespaces to the worker's user (sysctl user.max_user_namespaces, the container's seccomp and "
            "AppArmor profile)"
            if way.tier is tiers.Tier.NONE
            else f"allow user namespaces, or set NIGHTSHIFT_SANDBOX_TIER={way.tier}"
        )
        return [failed("sandbox", f"{seen}; {wanted} is demanded", mend)]
    return [ok("sandbox", seen)]


def _version(program: str, flag: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run([path, flag], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def disk(known: Facts) -> list[Finding]:
    """The home, where database, workspaces and logs are. A home that is not there yet is judged by its parent."""
    place = known.home
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    seen = f"{free / 2**30:.1f} GB free at {place}"
    space = (
        ok("disk", seen)
        if free >= LEAST_FREE
        else failed("disk", seen, "free some space, or point NIGHTSHIFT_HOME at another disk")
    )
    return [space, _writable(known.home)]


def _writable(home: Path) -> Finding:
    if not home.exists():
        return noted("home", f"{home} is not there yet: ./dev up makes it")
    workspaces = home / "workspaces"
    place = workspaces if workspaces.exists() else home
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".probe-") as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        mend = f"give this user the right to write there (chown), or set NIGHTSHIFT_HOME; owner is {_owner(place)}"
        return failed("workspace", f"{place} cannot be written: {error.strerror}", mend)
    return ok("workspace", f"{place} can be written")


def _owner(place: Path) -> str:
    try:
        return place.owner()
    except (KeyError, OSError):
        return str(place.stat().st_uid)


def servers(known: Facts) -> list[Finding]:
    if known.stack is None:
        return [noted("stack", f"none runs in {known.home}")]
    found = cast("dict[str, dict[str, str]]", known.stack.get("servers") or {})
    return [
        noted(
            name,
            "the one at the URL given" if of.get("kind") == "url" else f"{of.get('version', '?')}, from {_kind(of)}",
        )
        for name, of in found.items()
    ]


def _kind(server: dict[str, str]) -> str:
    return {"wheel": "the Python wheel", "path": "the PATH"}.get(server.get("kind", ""), server.get("kind", "?"))
