"""In a child: the lines of a file that is shown as its mail or its calendar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workers.tools import plain, rendered, window
from workers.tools.view import View


def render(request: dict[str, Any], fds: list[int], over: Callable[[], bool]) -> dict[str, object]:
    """`{"text", "note"}`: the asked window of the view of the open file `fds[0]`."""
    kind = plain.sniff(plain.head(fds[0]))
    assert isinstance(kind, plain.Text)
    taken = window.take(
        rendered.chunks(fds[0], View(request["view"]), kind),
        first=int(request["first"]),
        most_lines=int(request["lines"]),
        most_chars=int(request["chars"]),
        over=over,
    )
    text, note = window.render(taken)
    return {"text": text, "note": note}
