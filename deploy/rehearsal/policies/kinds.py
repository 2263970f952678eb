"""Owns what a file is likely to be, told by its name and, once read, by its first lines."""

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final


class Kind(StrEnum):
    MAIL = "mail"
    CALENDAR = "calendar"
    TABLE = "table"
    NOTE = "note"
    LOG = "log"
    DATA = "data"
    CODE = "code"
    OPAQUE = "opaque"


BY_ENDING: Final = {
    ending: kind
    for kind, endings in {
        Kind.MAIL: "mbox eml mail",
        Kind.CALENDAR: "ics ical vcs",
        Kind.TABLE: "csv tsv",
        Kind.NOTE: "md markdown txt rst org adoc text",
        Kind.LOG: "log out err",
        Kind.DATA: "json jsonl yaml yml toml ini cfg conf xml html",
        Kind.CODE: "py pyi js jsx mjs ts tsx go rs rb sh bash sql c h cc cpp hpp cs java kt php pl lua css scss vue",
        Kind.OPAQUE: "png jpg jpeg gif webp svg ico pdf zip gz tar xz bz2 7z so o a pyc class jar woff woff2 ttf mp3 "
        "mp4 mov lock bin exe dll db sqlite parquet whl",
    }.items()
    for ending in endings.split()
}
SKIPPED_FOLDERS: Final = frozenset(
    (
        ".git",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        "dist",
        "build",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    )
)
_MAIL_HEAD: Final = re.compile(r"^(?:From |From: |Return-Path:|Received:|--- message \d+ ---)")
_LOG_LINE: Final = re.compile(
    r"^\W{0,3}\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*\b(?:INFO|WARN|WARNING|ERROR|DEBUG)\b", re.IGNORECASE
)


def kind_of(path: str, first_lines: list[str] | None = None) -> Kind:
    """The kind by ending, corrected by what the first lines show when the name says little."""
    pure = PurePosixPath(path)
    found = BY_ENDING.get(pure.suffix.lstrip(".").lower())
    if found is not None and found is not Kind.NOTE:
        return found
    if pure.parent.name in ("cur", "new") or (first_lines and _MAIL_HEAD.match(first_lines[0])):
        return Kind.MAIL
    if first_lines and first_lines[0].startswith("BEGIN:VCALENDAR"):
        return Kind.CALENDAR
    if first_lines and sum(_LOG_LINE.match(line) is not None for line in first_lines[:20]) > len(first_lines[:20]) / 2:
        return Kind.LOG
    if found is not None:
        return found
    if first_lines and first_lines[0].startswith("#!"):
        return Kind.CODE
    # What nobody named after a machine's format was probably written by a person.
    return Kind.NOTE


def skipped(path: str) -> bool:
    """What machines keep for themselves: caches, environments, anything hidden."""
    return any(part in SKIPPED_FOLDERS or part.startswith(".") for part in path.split("/") if part != ".")
