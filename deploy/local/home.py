"""Owns the home folder of one stack: its layout, its lock (one stack a home) and its secrets (0600)."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from deploy.local.explain import StackError, os_error

SOCKET_PATH_LIMIT = 107  # sun_path holds 108 bytes, the last of them NUL
LONGEST_SOCKET_NAME = len("/.s.PGSQL.5432.lock")
LEAST_FREE_BYTES = 150 * 1024 * 1024
# Commas part Postgres's list of folders, and the rest would have to be escaped in three kinds of URL.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.+-]+")


@dataclass(frozen=True, slots=True)
class Home:
    """Folders of one stack; all exist and are 0700."""

    root: Path
    sockets: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        return self.root / "valkey"

    @property
    def hold(self) -> Path:
        return self.root / "hold"

    @property
    def stack_file(self) -> Path:
        return self.root / "stack.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"


def open_home(path: Path) -> Home:
    """Makes what is missing and proves that it can be written; every refusal is a StackError of one sentence."""
    root = path.expanduser().absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = root.resolve()
        for name in ("logs", "hold"):
            (root / name).mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=".probe-") as probe:
            probe.write(b"x" * 4096)
            probe.flush()
    except OSError as error:
        raise os_error(error, "preparing", root) from error
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES and not (root / "postgres").exists():
        raise StackError(
            f"The disk is full: {root} has {free // 2**20} MB left and a database needs {LEAST_FREE_BYTES // 2**20}:"
            " free some space, or point NIGHTSHIFT_HOME at a folder on another disk."
        )
    return Home(root, _socket_folder(root))


def _socket_folder(root: Path) -> Path:
    """`run` in the home, or a short private folder where that path is too long or too odd for a socket's URL."""
    inside = root / "run"
    length = len(os.fsencode(inside)) + LONGEST_SOCKET_NAME
    fits = length <= SOCKET_PATH_LIMIT and _PLAIN_PATH.fullmatch(str(inside))
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    folder = inside if fits else Path("/tmp") / f"nightshift-{os.geteuid()}-{name}"  # noqa: S108 - owner and mode are checked below
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError as error:
        raise os_error(error, "making", folder) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise StackError(f"{folder} belongs to someone else: remove it, or set a shorter NIGHTSHIFT_HOME.")
    folder.chmod(0o700)
    return folder


@contextlib.contextmanager
def locked(home: Home) -> Generator[None]:
    """One stack a home. The kernel frees the lock when its holder dies, so it is never stale."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise os_error(error, "locking", home.lock_file) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise StackError(
                f"A stack already runs in {home.root} (pid {holder}): stop it with `./dev down`,"
                " or give this one another NIGHTSHIFT_HOME."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)


def lock_holder(root: Path) -> int | None:
    """The pid that holds the home's lock, or None when nobody does."""
    try:
        descriptor = os.open(root / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else None
    else:
        return None
    finally:
        os.close(descriptor)


def _password() -> str:
    return secrets.token_hex(24)


def secret(home: Home, name: str, make: Callable[[], str] = _password) -> str:
    """A password made once and kept in the home, 0600; letters and digits only, so it needs no escaping in a URL."""
    path = home.root / f"{name}.secret"
    try:
        found = path.read_text(encoding="ascii").strip()
        if found:
            return found
    except FileNotFoundError:
        pass
    made = make()
    write_private(path, made + "\n")
    return made


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, 0600: readers never see half a file."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise os_error(error, "writing", path) from error
