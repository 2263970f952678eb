"""The tool `git_log`: the history of the workspace or the attached folder, where that is a repository of its own."""

from __future__ import annotations

import os
import re

from shared.text import clean_text
from shared.values import Repeat
from workers.tools import child, git_command, git_job
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.places import INPUT, Place, locate, open_root
from workers.tools.tool import Tool, flag, integer, text
from workers.tools.touching import Files, Touch

_CAP = 40_000
_FOOTER = 200
_GIT_S = 20.0
_MOST_COMMITS = 500
_MOST_BYTES = 4 * 1024 * 1024
_MOST_SUBJECT = 300
# NUL is the one character that neither a name nor a subject can hold: a commit cannot forge another's line.
_FORM = "%x00%h%x00%ad%x00%an%x00%s"
_SINCE = re.compile(r"[0-9A-Za-z .:,+/-]{1,64}")


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Lines `hash date author | subject`, newest first; with `stat`, below each lines added, removed and path."""
    place = _place(context, arguments)
    since = text(arguments, "since", "")
    if since and not _SINCE.fullmatch(since):
        raise ToolRefused("since must be a date such as 2026-11-30 or 2 days ago")
    most = integer(arguments, "limit", 50)
    command = git_command.log_arguments(
        form=_FORM, most=most + 1, since=since, numbers=flag(arguments, "stat"), parts=place.parts
    )
    data, whole = _ask(context, place, command)
    fields = data.decode("utf-8", "replace").split("\x00")[1:]
    entries = [_entry(fields[at : at + 4]) for at in range(0, len(fields) - 3, 4)]
    if not whole and entries:
        entries.pop()  # the one that was cut
    return _show(entries, most, whole)


def _place(context: ToolContext, arguments: Arguments) -> Place:
    """The folder to ask about; without a path the attached one if it holds a repository, else the workspace."""
    path = text(arguments, "path", "")
    if path:
        return locate(context, path)
    attached = context.attached is not None and os.path.lexists(context.attached / ".git")
    return Place(attached=attached, parts=())


def _ask(context: ToolContext, place: Place, command: list[str]) -> tuple[bytes, bool]:
    program = git_command.program()
    if program is None:
        raise ToolRefused("there is no git on this host")
    request = {
        "job": "git",
        "program": program,
        "arguments": command,
        "environment": dict(git_command.ENVIRONMENT),
    }
    complaints, write_end = os.pipe()
    try:
        try:
            with open_root(context, place) as root:
                answer = child.ask(context, request, [root, write_end], seconds=_GIT_S, most=_MOST_BYTES)
        finally:
            os.close(write_end)
        os.set_blocking(complaints, False)
        words = _read(complaints)
    finally:
        os.close(complaints)
    if answer.end:
        raise ToolRefused(_failure(place, answer.end, words))
    return answer.data, answer.end == 0


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""


def _failure(place: Place, end: int, words: bytes) -> str:
    where = "input/" if place.attached else "the workspace"
    known = {
        128 + git_job.NO_REPOSITORY: f"{where} is not a git repository",
        128 + git_job.ODD_REPOSITORY: f"{where} has a .git that is a file or holds links, and is not read",
        128 + git_job.BORROWS: f"the repository in {where} borrows from another folder and is not read",
        128 + git_job.CANNOT_RUN: "git cannot be started on this host",
        128 + git_job.TOO_LATE: "git was not started: this worker stood still for too long; try again",
    }
    if end in known:
        return known[end]
    if b"does not have any commits" in words:
        return f"the repository in {where} has no commits yet"
    if end < 128:
        return "git was stopped by its bounds on memory or time; ask for less"
    return f"git could not read the repository in {where}"


def _entry(fields: list[str]) -> str:
    """`fields` are hash, date, author, and the subject with the numbers of its files in the lines below it."""
    subject, _, numbers = fields[3].partition("\n")
    commit, date, author, words = (" ".join(_one_line(field).split()) for field in (*fields[:3], subject))
    lines = [f"{commit} {date} {author.replace('|', '/')} | {words[:_MOST_SUBJECT]}"]
    for line in numbers.split("\n"):
        added, _, more = line.partition("\t")
        removed, _, path = more.partition("\t")
        if path:
            lines.append(f"    +{added} -{removed} {_one_line(path)}")
    return "\n".join(lines)


def _one_line(words: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", " ", clean_text(words))


def _show(entries: list[str], most: int, whole: bool) -> ToolResult:
    shown: list[str] = []
    room = _CAP - _FOOTER
    for entry in entries[:most]:
        room -= len(entry) + 1
        if room < 0:
            break
        shown.append(entry)
    if not entries:
        return ToolResult("[no commits there]")
    if not shown:
        shown.append(entries[0][: _CAP - _FOOTER])
    if len(shown) == len(entries) and whole:
        return ToolResult("\n".join(shown))
    note = f"{len(shown)} commits shown, more exist; raise limit, or narrow path or since"
    return ToolResult("\n".join([*shown, f"[{note}]"]), note=note)


def _touches(arguments: Arguments) -> Touch:
    """Whatever the path, the repository is the root's, and its state is not the path's alone."""
    inside = text(arguments, "path", "").split("/")[0] == INPUT
    return Touch(reads=(Files(INPUT if inside else "."),))


TOOL = Tool(
    name="git_log",
    description="Commits of the git repository at input/ or in the workspace, newest first; stat adds changed files.",
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "only commits that touch this"},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_COMMITS, "description": "default 50"},
            "since": {"type": "string", "description": "a date, or e.g. 2 days ago"},
            "stat": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    foreign=True,
    touches=_touches,
)
