"""Owns the last step before a program runs: tied to its parent's life, unprivileged where asked, then exec'd.

Run as a script by `spawn`, never imported: what it does to itself (namespaces, death signal) is unsafe between fork
and exec of a threaded process. The pid stays the same, so the caller's child is the program itself.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import sys
import time

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
NOBODY = 65534
REFUSED = 71  # EX_OSERR: the system does not allow what was asked


def enter_namespace() -> None:
    """Our uid becomes `nobody` to ourselves, yet keeps its rights on our files: Postgres refuses to run as root."""
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def die_with(parent: int, death_signal: int) -> None:
    """The kernel sends `death_signal` when the thread that spawned us ends. Set last: a change of uid clears it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    # The parent may have died before prctl; then the signal never comes.
    if os.getppid() != parent:
        sys.exit(REFUSED)


def be_watched(parent: int, death_signal: int) -> None:
    """Where the kernel has no such signal, a process of its own looks twice a second whether the parent lives."""
    us = os.getpid()
    first = os.fork()
    if first:
        os.waitpid(first, 0)  # it ends at once, so the watcher is init's child and not the program's
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    while lives(us):
        if not lives(parent):
            os.kill(us, death_signal)
            break
        time.sleep(0.5)
    os._exit(0)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS answers EINVAL for an unlimited hard limit; the soft one will do
            return


def main() -> None:
    parser = argparse.ArgumentParser(prog="launch")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument("--as", dest="identity", choices=("self", "namespace", "nobody"), default="self")
    parser.add_argument("--watched", action="store_true", default=sys.platform != "linux")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    try:
        raise_file_limit()
        if asked.identity == "namespace":
            enter_namespace()
        elif asked.identity == "nobody":
            become_nobody()
        if asked.watched:
            be_watched(asked.parent, asked.death_signal)
        else:
            die_with(asked.parent, asked.death_signal)
        os.execv(asked.command[0], asked.command)  # noqa: S606 - becoming the program is what this script is for
    except OSError as error:
        sys.stderr.write(f"cannot start {asked.command[0]}: {error.strerror} ({asked.identity})\n")
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
