"""What bubblewrap is told: every namespace its own, a root of read-only system folders, nothing of this host's matter.

A network namespace stops neither files nor UNIX sockets that lie in a folder, so what is not needed is not mounted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shared.sandbox.box import ENVIRONMENT, HOME, INNER, INSIDE, PROXY_PORT, PYTHON, Box

_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
SYSTEM_FILES = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/ssl/certs",
    "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/localtime", "/etc/mime.types", "/etc/terminfo",
)  # fmt: skip
"""Of /etc nothing else: what names this host's people, services and keys stays outside."""

_OPEN = ("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls")

MADE = {
    "/etc/passwd": f"root:x:0:0:root:/:/bin/false\nagent:x:{INNER}:{INNER}:agent:{HOME}:/bin/bash\n",
    "/etc/group": f"root:x:0:\nagent:x:{INNER}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files that a program expects and that say nothing of the host."""


PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


def arguments(
    box: Box, *, switch: bool, made: dict[str, int], filter_fd: int | None, gate: tuple[int, int] | None = None
) -> list[str]:
    """The arguments for `box`. With `switch` the caller has made the user namespace, as root, and the run changes to
    INNER inside it; `made` has a descriptor with the content of each file that is made for it, by path; `gate`: where
    the pid of its first process is told, and from where a word must come before the command begins."""
    environment = {**ENVIRONMENT, **(dict.fromkeys(_PROXIES, PROXY) if box.network else {})}
    return [
        *_spaces(switch=switch),
        *_system(box),
        *_scratch(box),
        *_matter(box),
        *_made(made),
        *(() if filter_fd is None else ("--seccomp", str(filter_fd))),
        *(() if gate is None else ("--info-fd", str(gate[0]), "--block-fd", str(gate[1]))),
        "--clearenv",
        *(word for name, value in environment.items() for word in ("--setenv", name, value)),
        "--chdir", INSIDE,
        "--remount-ro", "/dev",
        "--remount-ro", "/",
        "--",
        *(_become() if switch else _bounded(box.bounds.processes)),
        *box.command,
    ]  # fmt: skip


def _spaces(*, switch: bool) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if switch:
        # Of all that the namespace's root may do, only the way into a workspace that is closed to others and the way
        # down to INNER are left, and those are given up there.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        yield from ("--cap-add", "CAP_SETPCAP", "--cap-add", "CAP_DAC_READ_SEARCH")
    else:
        yield from ("--unshare-user", "--disable-userns", "--uid", str(INNER), "--gid", str(INNER))
    yield from ("--hostname", "sandbox", "--die-with-parent", "--new-session")


def _become() -> tuple[str, ...]:
    return (
        "/usr/bin/setpriv", f"--reuid={INNER}", f"--regid={INNER}", "--clear-groups", "--inh-caps=-all",
        "--ambient-caps=-all", "--bounding-set=-all", "--",
    )  # fmt: skip


def _bounded(processes: int) -> tuple[str, ...]:
    """Set outside, this bound would count all that this user runs on the host; in here it counts what is in here."""
    return ("/bin/bash", "-c", f'ulimit -u {processes} && exec "$@"', "bash")


def _system(box: Box) -> Iterator[str]:
    yield from ("--tmpfs", "/", "--ro-bind", "/usr", "/usr")
    for name in _LINKS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    # What lies above a mount is made for its maker alone where nobody says otherwise.
    for name in _OPEN:
        yield from ("--perms", "0755", "--dir", name)
    for name in SYSTEM_FILES:
        yield from ("--ro-bind-try", name, name)
    if box.python is not None:
        yield from ("--perms", "0755", "--dir", "/opt", "--ro-bind-fd", str(box.python), PYTHON)
    yield from ("--proc", "/proc", "--dev", "/dev")


def _made(made: dict[str, int]) -> Iterator[str]:
    for path, fd in made.items():
        yield from ("--perms", "0444", "--ro-bind-data", str(fd), path)


def _scratch(box: Box) -> Iterator[str]:
    yield from ("--perms", "0755", "--dir", "/home")
    for path in ("/tmp", HOME, "/run", "/dev/shm"):  # noqa: S108 - of the sandbox, and its own
        yield from ("--size", str(box.bounds.scratch_bytes), "--perms", "1777", "--tmpfs", path)


def _matter(box: Box) -> Iterator[str]:
    yield from ("--bind-fd", str(box.workspace), INSIDE)
    if box.attached is not None:
        yield from ("--ro-bind-fd", str(box.attached), f"{INSIDE}/input")
    for path in box.covered:
        yield from ("--size", "4096", "--perms", "0555", "--tmpfs", f"{INSIDE}/{path}", "--remount-ro")
        yield f"{INSIDE}/{path}"
    for kept in box.kept:
        yield from ("--ro-bind-fd", str(kept.fd), f"{INSIDE}/{kept.path}")


def contents(box: Box) -> dict[str, bytes]:
    """The files that are made for `box`, by path."""
    return {path: text.encode() for path, text in MADE.items()} | {f"{INSIDE}/{path}": b"" for path in box.blank}
