"""The floor: what cannot be undone is refused, whoever asks and whatever was granted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from shared.gate.options import Programs, is_program, parse
from shared.gate.paths import path, raw_device, vital
from shared.gate.shell.found import Invocation, Reading
from shared.gate.shell.marks import UNKNOWN, could_be, shown
from shared.gate.targets import How, targets
from shared.gate.verdict import Decision, Hit

_TAKES_ALL = "rm grm srm wipe unlink shred trash rmdir rimraf del-cli"
_DISK = (
    "mkfs mkfs.* mke2fs mkswap wipefs blkdiscard fdisk sfdisk cfdisk sgdisk gdisk parted partprobe badblocks mkntfs"
    " mkdosfs newfs zpool zfs lvremove vgremove pvremove pvcreate mdadm cryptsetup nvme hdparm diskutil"
    " format sg_format"
)
_READS_ONLY: Mapping[str, re.Pattern[str]] = {
    "fdisk": re.compile(r"(?:^| )(?:-l|--list)\b"), "sfdisk": re.compile(r"(?:^| )(?:-l|-d|--dump|--list)\b"),
    "parted": re.compile(r"(?:^| )(?:-l|print)\b"), "sgdisk": re.compile(r"(?:^| )(?:-p|--print)\b"),
    "zpool": re.compile(r"^(?:status|list|get|history|iostat)\b"), "zfs": re.compile(r"^(?:list|get)\b"),
    "mdadm": re.compile(r"--detail|--examine|-D\b"), "nvme": re.compile(r"^(?:list|smart-log|id-)"),
    "hdparm": re.compile(r"^-[iItT]+ "), "diskutil": re.compile(r"^(?:list|info|activity)\b"),
    "cryptsetup": re.compile(r"^(?:status|luksDump|isLuks)\b"), "wipefs": re.compile(r"^(?!.*(?:-a|--all|-o))"),
    "partprobe": re.compile(r"-s"), "gdisk": re.compile(r"-l"),
}  # fmt: skip
_OFF = "shutdown reboot halt poweroff telinit init systemctl loginctl kexec osascript rundll32 rtcwake pm-suspend"
_HELP = (("--help",), ("--version",))


def hits(reading: Reading) -> Iterator[Hit]:
    for doom in reading.doom:
        yield _hit("floor.fork_bomb", doom)
    for call in reading.invocations:
        yield from _of_call(call)


def _of_call(call: Invocation) -> Iterator[Hit]:
    for target in targets(call):
        if target.how in (How.WRITES, How.REMOVES) and raw_device(target.word, call.cwd):
            yield _hit("floor.raw_device", f"it writes over the disk or memory {shown(target.word)}", call)
        if target.how is How.WRITES and re.match(
            r"/proc/sysrq-trigger|/proc/sys/kernel/sysrq", path(target.word, call.cwd).text
        ):
            yield _hit("floor.power", "it stops the machine through the kernel", call)
    if not call.argv or call.words in _HELP:
        return
    name = call.program
    rules = _RULES.of(name) if name.strip(UNKNOWN) else [_removed]  # of a name that is not known, the likeliest
    for rule in rules:
        yield from rule(call)
    if re.match(r"mkfs\b|mkfs\.", name):
        yield _hit("floor.disk", "it makes a file system, and what was there is gone", call)


def _removed(call: Invocation) -> Iterator[Hit]:
    asked = parse(call.words)
    if "no-preserve-root" in asked.names:
        yield _hit("floor.delete", "it asks to delete the root of the file system", call)
    whole = (
        asked.has("rR", "recursive") or asked.unsure or call.more or is_program(call.program, "srm wipe rimraf del-cli")
    )
    for word in asked.operands:
        lost = vital(word, call.cwd)
        deletes = whole or any(mark in word for mark in "\ue002\ue003")
        if lost is not None and (deletes or call.program == "rmdir") and not (call.program == "rmdir" and "…" in word):
            yield _hit("floor.delete", f"it deletes {lost}", call)


def _moved(call: Invocation) -> Iterator[Hit]:
    for word in parse(call.words, "-t --target-directory -S").operands[:-1]:
        lost = vital(word, call.cwd)
        if lost is not None:
            yield _hit("floor.delete", f"it moves away {lost}", call)


def _owned(call: Invocation) -> Iterator[Hit]:
    asked = parse(call.words, "--reference")
    if not asked.has("R", "recursive"):
        return
    for word in asked.operands[1:]:
        lost = vital(word, call.cwd)
        if lost is not None:
            yield _hit("floor.rights", f"it changes the rights of {lost}, which nothing can set back", call)


def _found(call: Invocation) -> Iterator[Hit]:
    words = list(call.words)
    starts = list(words[: next((i for i, w in enumerate(words) if w.startswith("-") and len(w) > 2), len(words))])
    execs = " ".join(words)
    deletes = "-delete" in words or re.search(
        r"-(?:exec|ok)(?:dir)? (?:\S*/)?(?:rm|shred|unlink|dd|truncate|mv|sudo)\b", execs
    )
    narrow = any(w in words for w in ("-name", "-iname", "-path", "-regex", "-newer", "-mtime", "-size", "-empty"))
    for word in starts:
        lost = None if word.startswith("-") else vital(word, call.cwd)
        if deletes and lost is not None and not (narrow and not re.fullmatch(r"/|/\*", word)):
            yield _hit("floor.delete", f"it deletes what it finds in {lost}", call)


def _synced(call: Invocation) -> Iterator[Hit]:
    asked = parse(call.words, "-e --rsh --exclude --include")
    if any(name.startswith("del") for name in asked.names) and asked.operands:
        lost = vital(asked.operands[-1], call.cwd)
        if lost is not None:
            yield _hit("floor.delete", f"it deletes from {lost} what the other side lacks", call)


def _disk(call: Invocation) -> Iterator[Hit]:
    harmless = _READS_ONLY.get(call.program)
    text = " ".join(call.words)
    touches = any(raw_device(word) for word in call.words) or UNKNOWN in text
    if harmless is not None and harmless.search(text):
        return
    if call.program in ("zpool", "zfs", "lvremove", "vgremove", "pvremove", "nvme", "cryptsetup", "diskutil", "mdadm"):
        if (
            not re.search(r"destroy|remove|format|luksFormat|erase|zero|secureErase|--create|labelclear|sanitize", text)
            and "remove" not in call.program
        ):
            return
    elif (call.program == "format" and not re.search(r"[A-Za-z]:|/dev/", text)) or (
        call.program in ("hdparm", "badblocks", "fdisk", "parted", "sfdisk", "sgdisk", "gdisk", "cfdisk")
        and not touches
    ):
        return
    yield _hit("floor.disk", "it changes or wipes a disk, and what was there is gone", call)


def _off(call: Invocation) -> Iterator[Hit]:
    name, words = call.program, [word for word in call.words if not word.startswith("-")]
    first = words[0] if words else ""
    stops = [
        "poweroff",
        "reboot",
        "halt",
        "kexec",
        "suspend",
        "hibernate",
        "emergency",
        "rescue",
        "soft-reboot",
        "hybrid-sleep",
        "exit",
        "default",
    ]
    if is_program(name, "systemctl loginctl"):
        if not any(could_be(first, stop) for stop in stops[:-2]) and not (first == "isolate" and len(words) > 1):
            return
    elif is_program(name, "init telinit"):
        if first not in ("0", "1", "6", "s", "S") and not first.startswith(UNKNOWN):
            return
    elif is_program(name, "kexec"):
        if not {"-e", "--exec", "-f"} & set(call.words):
            return
    elif name == "osascript":
        if not re.search(r"(?i)shut ?down|restart|\bsleep\b", " ".join(call.words)):
            return
    elif name == "shutdown" and {"-c"} & set(call.words):
        return
    yield _hit("floor.power", "it stops or restarts the machine", call)


def _killed(call: Invocation) -> Iterator[Hit]:
    words = list(call.words)
    if words[:1] == ["-l"]:
        return
    targets_ = [w for i, w in enumerate(words) if not w.startswith("-") and not (i and words[i - 1] in ("-s", "-n"))]
    negative = (
        [w for w in words[1:] if w in ("-1", "-0")] or (words == ["-1"]) or (words[:1] == ["--"] and "-1" in words)
    )
    if negative or "1" in targets_ or is_program(call.program, "killall5"):
        yield _hit("floor.kill_all", "it ends every process, or the first of them", call)


def _named(call: Invocation) -> Iterator[Hit]:
    asked = parse(call.words, "-s --signal -u --user -n --ns -o -y -g")
    everything = any(re.fullmatch(r"[.^$*\ue002]+|\.\*|init|systemd|launchd", word) for word in asked.operands)
    if everything or (call.program == "killall" and asked.has("r") and any(w in (".", ".*") for w in asked.operands)):
        yield _hit("floor.kill_all", "it ends every process", call)


_RULES = Programs[Callable[[Invocation], Iterator[Hit]]](
    {
        _TAKES_ALL: _removed,
        "mv gmv": _moved,
        "chmod chown chgrp chattr setfacl gchmod gchown": _owned,
        "find gfind": _found,
        "rsync": _synced,
        _DISK: _disk,
        _OFF: _off,
        "kill killall5": _killed,
        "pkill killall": _named,
    }
)


def _hit(rule: str, why: str, call: Invocation | None = None) -> Hit:
    return Hit(rule, Decision.REFUSE, why, "" if call is None else shown(" ".join(call.argv))[:300])
