"""The tool `write_file`: a whole file, there at once or not at all.

`Repeat.ONCE`, though the same content twice is the same file: between the lost run and its repeat another may have
changed the file, and the repeat would take that change away unseen. The model is told and can look.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from shared.text import clean_text
from shared.values import Repeat
from workers.tools import beneath
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, check_going
from workers.tools.places import locate_for_writing, open_root
from workers.tools.tool import Tool, text

_MOST_BYTES = 1_000_000
_MOST_DEPTH = 64
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The file holds exactly the content, its folders made where missing. Links are neither followed nor replaced."""
    place = locate_for_writing(context, text(arguments, "path", ""))
    content = clean_text(text(arguments, "content", "")).encode()
    if len(content) > _MOST_BYTES:
        raise ToolRefused(f"the content is {len(content):,} bytes; at most {_MOST_BYTES:,} are written, so split it")
    if len(place.parts) > _MOST_DEPTH:
        raise ToolRefused(f"the path has {len(place.parts)} levels; at most {_MOST_DEPTH} are made")
    with open_root(context, place) as root, _made_folder(root, place.parts[:-1]) as parent:
        try:
            replaced = _put(context, parent, place.parts, content)
        except OSError as error:
            raise beneath.refusal(parent, place.parts, error, "") from error
    return ToolResult(f"{'replaced' if replaced else 'written'}: {place.shown} ({len(content):,} bytes)")


def _put(context: ToolContext, parent: int, parts: Sequence[str], content: bytes) -> bool:
    mode = _mode_of_old(parent, parts)
    # Beside its goal, so that the rename stays in one folder, and under a name that nobody can guess.
    part = f".{secrets.token_hex(8)}.part"
    fd = os.open(part, _NEW_FLAGS, 0o600, dir_fd=parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, 0o644 if mode is None else mode)
            os.fsync(fd)
        # A worker that was frozen until others gave its turn away stops here.
        check_going(context)
        _mode_of_old(parent, parts)
        os.rename(part, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.unlink(part, dir_fd=parent)
        raise
    return mode is not None


def _mode_of_old(parent: int, parts: Sequence[str]) -> int | None:
    """The permissions of the file to be replaced, None if there is none. Raises `ToolRefused` if it is no file."""
    try:
        old = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = beneath.kind_of(old.st_mode)
    if kind != "file":
        raise ToolRefused(f"{'/'.join(parts)} is a {kind} and is not replaced")
    return stat.S_IMODE(old.st_mode) & 0o777


@contextmanager
def _made_folder(root: int, parts: Sequence[str]) -> Generator[int]:
    fd = os.dup(root)
    try:
        for index, name in enumerate(parts):
            try:
                inner = _enter(fd, name)
            except OSError as error:
                raise beneath.refusal(fd, parts[: index + 1], error, "") from error
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _enter(fd: int, name: str) -> int:
    try:
        return os.open(name, beneath.FOLDER_FLAGS, dir_fd=fd)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another made it meanwhile, which is as well
            os.mkdir(name, 0o755, dir_fd=fd)
        return os.open(name, beneath.FOLDER_FLAGS, dir_fd=fd)


TOOL = Tool(
    name="write_file",
    description="Write a whole text file in the workspace, replacing what was there. input/ is read-only.",
    schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=2_000,
)
