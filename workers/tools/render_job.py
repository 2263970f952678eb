"""In a child: the lines of a file that is shown as its mail or its calendar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from workers.tools import plain, rendered, window
from workers.tools.view import View

_COUNTING_S = 1.0
"""A mailbox of 20,000 messages takes ten seconds to render; how many lines it has is not worth that."""


def render(request: dict[str, Any], fds: list[int], over: Callable[[], bool]) -> dict[str, object]:
    """`{"text", "note"}`: the asked window of the view of the open file `fds[0]`."""
    kind = plain.sniff(plain.head(fds[0]))
    assert isinstance(kind, plain.Text)
    counted_by = time.monotonic() + _COUNTING_S
    taken = window.take(
        rendered.chunks(fds[0], View(request["view"]), kind),
        first=int(request["first"]),
        most_lines=int(request["lines"]),
        most_chars=int(request["chars"]),
        over=over,
        counted=lambda: time.monotonic() >= counted_by,
    )
    text, note = window.render(taken, plain.unread(fds[0]))
    return {"text": text, "note": note}
