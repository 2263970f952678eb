"""The tool `patch`: one place of a text file changed, with a diff back; there at once or not at all.

`Repeat.ONCE`, as `write_file` is: between the lost run and its repeat another may have changed the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from shared.text import bounded, clean_text
from shared.values import Repeat
from workers.sandbox.alone import must_be_alone
from workers.tools import beneath, patching, putting
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, check_acting
from workers.tools.places import Place, locate_for_writing, open_root
from workers.tools.tool import Tool, flag, text
from workers.tools.touching import Files, Touch

_MOST_BYTES = 1_000_000
_MOST_DIFF = 6_000
_CAP = 24_000  # the diff, and a path as long as one may be
_READ = 1 << 16


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The file is as before, but for the place; nothing is changed where the place is not clear."""
    place = locate_for_writing(context, text(arguments, "path", ""))
    must_be_alone(context, place.parts)
    old, new = clean_text(text(arguments, "old", "")), clean_text(text(arguments, "new", ""))
    with open_root(context, place) as root:
        was, mark = _read(root, place)
        came = patching.patch(was, old, new, everywhere=flag(arguments, "everywhere"))
        if isinstance(came, patching.NotPatched):
            raise ToolRefused(f"{place.shown} was not changed: {came.why}")
        content = came.text.encode()
        if len(content) > _MOST_BYTES:
            raise ToolRefused(f"{place.shown} would be {len(content):,} bytes; at most {_MOST_BYTES:,} are written")
        putting.put(root, place.parts, content, _unchanged(context, root, place, mark))
    told = [f"changed: {place.shown} ({len(content):,} bytes)"]
    if came.places > 1:
        told.append(f"in {came.places} places")
    if came.forgiven is not None:
        told.append(f"old differed from the file in {came.forgiven}")
    return ToolResult(f"{'; '.join(told)}\n{bounded(came.diff, _MOST_DIFF)}", note="; ".join(told[1:]) or None)


def _read(root: int, place: Place) -> tuple[str, tuple[int, ...]]:
    """The text, and what tells this state of the file from another."""
    with beneath.regular_file(root, place.parts) as fd:
        seen = os.fstat(fd)
        if seen.st_size > _MOST_BYTES:
            raise ToolRefused(f"{place.shown} is {seen.st_size:,} bytes; at most {_MOST_BYTES:,} are changed in place")
        data = b""
        while len(data) <= _MOST_BYTES and (piece := os.read(fd, _READ)):
            data += piece
        try:
            return data.decode("utf-8"), _mark(seen)
        except UnicodeDecodeError as error:
            raise ToolRefused(f"{place.shown} is not text in UTF-8, and is not changed in place") from error


def _mark(seen: os.stat_result) -> tuple[int, ...]:
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _unchanged(context: ToolContext, root: int, place: Place, mark: tuple[int, ...]) -> Callable[[], None]:
    """Asked right before the file is replaced: what another wrote meanwhile must not be lost unseen."""

    def check() -> None:
        check_acting(context)
        with beneath.regular_file(root, place.parts) as fd:
            if _mark(os.fstat(fd)) != mark:
                raise ToolRefused(f"{place.shown} was changed by something else meanwhile: read it again")

    return check


TOOL = Tool(
    name="patch",
    description=(
        "Change a text file in one place: old, copied as it stands there with enough lines to be the only such place, "
        "becomes new. The answer is a diff."
    ),
    schema={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "old": {"type": "string", "minLength": 1},
            "new": {"type": "string"},
            "everywhere": {"type": "boolean", "description": "in all places"},
        },
        "required": ["path", "old", "new"],
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=_CAP,
    look="read_file shows what stands there",
    touches=lambda arguments: Touch(writes=(Files(text(arguments, "path", "")),)),
)
