"""Where a path of a command line leads, from what is written: nothing is looked up."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from shared.gate.options import names
from shared.gate.shell.marks import HOME, ONE, STAR, UNKNOWN, could_be, plain

HOME_FOLDER = "/home/~"
SYSTEM = (
    "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv",
    "sys", "usr", "var", "mnt", "media", "nix", "System", "Library", "Applications", "Users", "Volumes", "private",
)  # fmt: skip
_DEEPER = names(
    "/usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/share /usr/include /usr/local /usr/src"
    " /var/lib"
    " /var/log /var/db /var/mail /var/spool /var/cache /var/www /etc/ssh /etc/pam.d /etc/systemd /boot/efi /boot/grub"
    " /usr/local/bin /usr/local/lib /System/Library /private/etc /private/var /mnt/c"
)
_SCRATCH = re.compile(r"/(?:tmp|var/tmp|dev/shm|private/tmp)/[^/]|/dev/(?:null|stdout|stderr|fd/\d+|tty|zero)$")
_SOME_DEVICES = ("sda", "sdb", "vda", "hda", "xvda", "nvme0n1", "mmcblk0", "disk0", "dm-0", "mem")
RAW = re.compile(
    r"/dev/(?:r?disk\d|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|mapper/|dm-\d|md\d|loop\d|sr\d|sg\d|st\d|nbd\d"
    r"|zd\d|mem$|kmem$|port$"
    r"|disk/|root$|block/|mtd|vd[a-z]|bcache|pmem|ram\d)"
)


@dataclass(frozen=True, slots=True)
class Path:
    """`text` is normal: absolute, or from the workspace (`..` in front where it leads out of it)."""

    text: str
    unknown: bool = False

    @property
    def absolute(self) -> bool:
        return self.text.startswith("/")

    @property
    def inside(self) -> bool:
        """Of the workspace, for all that is written here."""
        return not self.unknown and not self.absolute and not self.text.startswith("..")

    @property
    def scratch(self) -> bool:
        return _SCRATCH.match(self.text) is not None

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in self.text.split("/") if part not in ("", "."))


def path(word: str, cwd: str = ".") -> Path:
    """What is known of it. A part that may hold slashes of its own, with `..` after it, leads nobody knows where."""
    text = word.replace(HOME, HOME_FOLDER)
    if not text.startswith("/"):
        if text.startswith(UNKNOWN) and text.strip(UNKNOWN) == "":
            return Path(text, unknown=True)
        if cwd.startswith(UNKNOWN):
            return Path(text, unknown=True)
        text = posixpath.join(cwd.replace(HOME, HOME_FOLDER), text)
    if re.search(rf"{UNKNOWN}[^/]*/\.\.(?:/|$)", text):
        return Path(text, unknown=True)
    normal = posixpath.normpath(text or ".")
    return Path("/" + normal.lstrip("/") if normal.startswith("/") else normal, unknown=normal.startswith(UNKNOWN))


def vital(word: str, cwd: str = ".") -> str | None:
    """What would be lost, were the path and all below it gone: the system, or a person's home. None where it is
    neither, or too deep in it to be the whole."""
    if re.fullmatch(rf"{UNKNOWN}+/[{STAR}{ONE}.]*", word):
        return "all of /, where the variable is empty"
    text = path(word, cwd).text
    if not text.startswith("/"):
        return None
    parts = [part for part in text.split("/") if part]
    while parts and re.fullmatch(rf"[{STAR}{ONE}.]*[{STAR}{ONE}][{STAR}{ONE}.]*|\.\{{.*", parts[-1]):
        parts.pop()
    if not parts:
        return "all of /"
    whole = "/" + "/".join(parts)
    if len(parts) == 1 and parts[0].strip(UNKNOWN) and any(could_be(parts[0], name) for name in SYSTEM):
        return f"/{plain(parts[0])} of the system"
    if parts[0] in ("home", "Users", "root") and len(parts) <= (1 if parts[0] == "root" else 2):
        return "a person's home"
    return f"{whole} of the system" if whole in _DEEPER else None


def raw_device(word: str, cwd: str = ".") -> bool:
    text = path(word, cwd).text
    if any(mark in text for mark in (STAR, ONE)) and text.startswith("/dev/"):
        return any(could_be(text, f"/dev/{name}") for name in _SOME_DEVICES)
    return RAW.match(text) is not None
