"""The index of skills: folders with a `SKILL.md`, each with its name and what it is for; the tool `skills` reads one.

Bounded in every direction: how many folders are looked at, how much of each file, how long the index gets. No link is
followed and nothing but a regular file is opened.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from shared.enclosed import enclosed
from shared.text import clean_text
from workers.prompt.data import LeftOut, without_suspects

FILE = "SKILL.md"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_FOLDERS = 1_000
_MOST_LISTED = 100
_MOST_CHARS = 8_000
_MOST_LINE = 240
_HEAD_BYTES = 8_192
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HEAD = """# Skills
How this team does certain things. Where one fits the request, read it with the tool skills before you begin."""


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str


def text(folder: Path) -> tuple[str, tuple[LeftOut, ...]]:
    """The section with one line a skill, sorted by name; empty where there is none. And what was left out of it."""
    found = index(folder)
    if not found:
        return "", ()
    lines: list[str] = []
    used = 0
    for skill in found[:_MOST_LISTED]:
        line = f"{skill.name}: {skill.description}" if skill.description else skill.name
        used += len(line) + 3
        if used > _MOST_CHARS:
            break
        lines.append(line)
    kept, left_out = without_suspects("skills", lines)
    more = len(found) - len(lines)
    shown = ["- " + line for line in kept] + ([f"[{more} more skills are not listed]"] if more else [])
    return "\n".join((_HEAD, enclosed("skills", "\n".join(shown)))), left_out


def index(folder: Path) -> list[Skill]:
    """Every skill below the folder, by name. What is no skill, or cannot be read, is not one."""
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        with os.scandir(root) as entries:
            names = sorted(one.name for one in islice(entries, _MOST_FOLDERS) if NAME.fullmatch(one.name))
        return [Skill(name, description(start)) for name in names if (start := _start(root, name)) is not None]
    finally:
        os.close(root)


def description(start: str) -> str:
    """What a skill is for, on one line: `description` of its front matter, else its first line of text."""
    lines = start.splitlines()
    body = lines
    if lines and lines[0].strip() == "---":
        end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), len(lines))
        found = _field(lines[1:end], "description")
        if found:
            return _short(found)
        body = lines[end + 1 :]
    return _short(next((line.lstrip("# ") for line in body if line.strip("# \t")), ""))


def _field(lines: list[str], name: str) -> str:
    """The value of a key of the front matter: on its line, quoted or not, or on the indented lines below it."""
    for at, line in enumerate(lines):
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            value = value.strip()
            if value in ("", ">", "|", ">-", "|-", ">+", "|+"):
                below: list[str] = []
                for following in lines[at + 1 :]:
                    if following.strip() and not following.startswith((" ", "\t")):
                        break
                    below.append(following.strip())
                return " ".join(below)
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            return value[1:-1] if quoted else value
    return ""


def _short(value: str) -> str:
    flat = " ".join(value.split())
    return flat if len(flat) <= _MOST_LINE else flat[: _MOST_LINE - 1] + "…"


def _start(root: int, name: str) -> str | None:
    with suppress(OSError):
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        try:
            opened = os.open(FILE, _READ, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    return clean_text(os.pread(opened, _HEAD_BYTES, 0).decode("utf-8", "replace"))
            finally:
                os.close(opened)
        finally:
            os.close(folder)
    return None
