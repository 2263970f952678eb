"""What a parent reads of a child: how it ended, its last message within a share of the window, and handles of the rest.

The message and the names of files are the child's own words: no text of theirs can close the pair of tags around it or
begin a line that looks like ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from uuid import UUID, uuid5

from psycopg.rows import DictRow

from shared.request import estimate, handles
from shared.store.statements import waiting
from shared.text import clean_text
from shared.values import TERMINAL, TurnStatus
from workers import fence
from workers.held import Held
from workers.ports import Ports
from workers.tools import folders, putting
from workers.tools.context import ToolRefused
from workers.tools.places import CHILDREN

LEAST_TOKENS = 300
"""Below this a summary is noise: the share of a large batch in a full window is at least so much."""
MOST_FILES = 20
MOST_LOOKED_AT = 2_000
MOST_NAME = 200
_DEPTH = 8
_LOOK_S = 2.0
_NAMES = UUID("3d0c2a55-52a6-5f61-8d0b-0d6f0b6f5a2e")


def share(room_tokens: float, children: int) -> float:
    """Tokens that the message of each of so many children may take."""
    return max(LEAST_TOKENS, room_tokens / max(1, children))


def told(ports: Ports, held: Held, row: DictRow, of: int, share_tokens: float) -> str:
    """The summary of one child of a batch of `of`. Raises LeaseLost."""
    name = row["workspace"].rsplit("/", 1)[-1]
    number = row["child_index"] + 1
    cost = "cost unknown" if row["unknown"] else f"${row['usd']:.4f}"
    head = f"[child {number} of {of}: {row['status']}, {row['steps']} steps, {cost}: {line(row['title'], 80)}]"
    said = _said(row)
    shown = cut(said, share_tokens, held.claim.model)
    parts = [head, f'<report child="{number}">\n{_inside(shown)}\n</report>']
    if len(shown) < len(said):
        place = _keep(ports, held, row["id"], name, said)
        parts.append(f"[{len(said) - len(shown)} more characters: {place}]")
    files = _files(held.claim.workspace, name)
    if files:
        parts.append(f"[files it wrote: {files}]")
    return "\n".join(parts)


def cut(text: str, tokens: float, model: str) -> str:
    """The text, or as much of its beginning as that many tokens hold."""
    size = estimate.estimate_text(text, model)
    while size > tokens and text:
        text = text[: min(len(text) - 1, int(len(text) * tokens / size))]
        size = estimate.estimate_text(text, model)
    return text


def line(text: str, limit: int = MOST_NAME) -> str:
    """One line of printable characters, without the bracket that ends a line of ours."""
    flat = "".join(c if c.isprintable() and c != "]" else "\ufffd" for c in clean_text(" ".join(text.split())))
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _said(row: DictRow) -> str:
    if row["status"] == TurnStatus.DONE:
        return row["answer"] or "(it said nothing)"
    if TurnStatus(row["status"]) in TERMINAL:
        why = f"it did not finish: {row['error_text'] or row['status']}"
        return f"{why}\n\nIts last words:\n{row['answer']}" if row["answer"] else why
    return "it was not ready in time and was stopped"


def _inside(text: str) -> str:
    return clean_text(text).replace("</report", "<\\/report")


def _keep(ports: Ports, held: Held, child: UUID, name: str, text: str) -> str:
    """The whole message, in the store and in a file that the parent's tools can read; where that is, in words.

    The file stands beside the child's folder, which the child cannot reach, and is written from descriptor to
    descriptor: whatever lies there, it is the parent's own workspace that it goes to, or nowhere.
    """
    artifact = uuid5(_NAMES, str(child))
    handle = handles.artifact(artifact)
    fence.rows(ports, held, waiting.KEEP_REPORT, {"artifact": artifact, "body": text.encode()})
    path = f"{name}.report.md"
    try:
        root = os.open(held.claim.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return f"{handle} (the workspace is gone)"
    try:
        putting.put(root, (CHILDREN, path), text.encode(), lambda: None)
    except (ToolRefused, OSError):
        return f"{handle} (it could not be written to {CHILDREN}/{path})"
    finally:
        os.close(root)
    return f"read_file {CHILDREN}/{path} ({handle})"


def _files(workspace: Path, name: str) -> str:
    """Handles of what the child wrote: paths below the parent's workspace, the first ones by folder and name."""
    tally, until = folders.Tally(), time.monotonic() + _LOOK_S
    try:
        root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        walk = folders.walk(root, (CHILDREN, name), _DEPTH, lambda: time.monotonic() >= until, tally, "")
        found = [entry for entry in islice(walk, MOST_LOOKED_AT) if entry.kind == "file"]
    except (ToolRefused, OSError):
        return ""  # it never began, or its folder is gone
    finally:
        os.close(root)
    return _listed(found)


def _listed(found: Sequence[folders.Entry]) -> str:
    shown = [f"{line('/'.join(entry.parts))} ({entry.size:,} bytes)" for entry in found[:MOST_FILES]]
    if len(found) > MOST_FILES:
        shown.append(f"and {len(found) - MOST_FILES} more")
    return ", ".join(shown)
