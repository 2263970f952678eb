"""Owns `artifact`: the whole of a result of which the transcript holds a preview, page by page, byte for byte."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import quote

from api.cli import safe, screen
from api.cli.client import Client
from api.cli.exits import Exit, Stop

PAGE = 1 << 20


def artifact(client: Client, asked: argparse.Namespace) -> Exit:
    """To the file that `--out` names, which is there whole or not at all; else to where the output goes: a terminal
    gets what is harmless to it, anything else the bytes."""
    path = f"/v1/sessions/{quote(asked.session, safe='')}/artifacts/{quote(_id(asked.id), safe='')}"
    if asked.out is not None:
        size = _into(Path(asked.out), _pages(client, path))
        if asked.json:
            screen.as_json({"file": asked.out, "bytes": size})
        else:
            screen.say(f"{size:,} bytes written to {safe.line(asked.out)}")
    elif sys.stdout.isatty():
        reader = codecs.getincrementaldecoder("utf-8")("replace")
        for page in _pages(client, path):
            sys.stdout.write(safe.text(reader.decode(page)))
        sys.stdout.write(safe.text(reader.decode(b"", final=True)) + "\n")
    else:
        for page in _pages(client, path):
            sys.stdout.buffer.write(page)
        sys.stdout.buffer.flush()
    return Exit.DONE


def _id(named: str) -> str:
    """As the transcript names it (`artifact:…`), or the bare id."""
    return named.removeprefix("artifact:")


def _pages(client: Client, path: str) -> Iterator[bytes]:
    """Raises Stop; also where what comes is not all that was promised."""
    had = 0
    while True:
        page, headers = client.get_bytes(path, offset=had, limit=PAGE)
        size = headers.get("x-nightshift-size", "")
        if not size.isdecimal():
            raise Stop("not_nightshift", "the API does not say how long it is: this command is newer than the service")
        had += len(page)
        if page:
            yield page
        if had >= int(size):
            return
        if not page:
            raise Stop("artifact_cut", f"only {had:,} of {int(size):,} bytes came: ask again")


def _into(goal: Path, pages: Iterator[bytes]) -> int:
    """How many bytes were written. What stood there before stays until all is there. Raises Stop."""
    written = 0
    try:
        with NamedTemporaryFile(dir=goal.parent, prefix=f".{goal.name[:40]}.", delete=False) as file:
            try:
                for page in pages:
                    written += file.write(page)
                file.flush()
                Path(file.name).replace(goal)
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
    except OSError as error:
        raise Stop("not_written", f"{safe.line(goal)} cannot be written: {error.strerror or 'it failed'}") from error
    return written
