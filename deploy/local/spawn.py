"""Owns starting a program as our child: a session of its own, tied to our life, with exactly the environment given."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import IO

_LAUNCH = Path(__file__).with_name("launch.py")
# What any program needs to find its files, speak UTF-8 and reach the network as the machine is set up.
_KEPT = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip


class Identity(Enum):
    """As whom a server runs. Postgres refuses uid 0 and uids without a passwd entry."""

    SELF = "self"
    NAMESPACE = "namespace"  # a user namespace that shows our uid as nobody's
    NOBODY = "nobody"  # really uid 65534, on folders that it owns


def clean_environment(source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment that any child may see: no key, no setting, no Python switch."""
    kept = {name: source[name] for name in _KEPT if name in source}
    if any(name.lower().endswith("_proxy") for name in kept):
        # The stack's own addresses are on this machine; a proxy would be asked for them otherwise.
        here = ",".join(filter(None, (kept.get("NO_PROXY", kept.get("no_proxy", "")), "127.0.0.1", "localhost")))
        kept |= {"NO_PROXY": here, "no_proxy": here}
    return kept


def server_environment() -> dict[str, str]:
    """Messages in English, which `explain` reads; none of the PG* variables that would steer Postgres."""
    return clean_environment() | {"LC_ALL": "C", "TZ": "UTC"}


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    output: int | IO[bytes],
    death_signal: signal.Signals = signal.SIGKILL,
    identity: Identity = Identity.SELF,
) -> subprocess.Popen[bytes]:
    """The child leads its own session, so a Ctrl-C at the terminal reaches the supervisor alone, which stops in order.

    `death_signal` comes when the *thread* that calls this ends: call it from one that lives as long as the child.
    With `output` PIPE, stdout and stderr are two pipes; else both go to that file.
    """
    return subprocess.Popen(
        launch_command(command, death_signal, identity),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE if output == subprocess.PIPE else subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )


def launch_command(command: Sequence[str], death_signal: signal.Signals, identity: Identity) -> list[str]:
    return [
        sys.executable, "-I", "-S", str(_LAUNCH),
        "--parent", str(os.getpid()), "--death-signal", str(int(death_signal)), "--as", identity.value,
        "--", *command,
    ]  # fmt: skip


def unprivileged() -> Identity:
    """As whom Postgres can run here."""
    if os.geteuid() != 0 and _has_name(os.geteuid()):
        return Identity.SELF
    probe = launch_command([sys.executable, "-I", "-S", "-c", ""], signal.SIGKILL, Identity.NAMESPACE)
    allowed = subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode == 0
    if allowed:
        return Identity.NAMESPACE
    return Identity.NOBODY if os.geteuid() == 0 else Identity.SELF


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
