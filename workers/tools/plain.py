"""A file's bytes become UTF-8 text in chunks, whatever encoding they came in; at most `MOST_BYTES` are ever read."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass

MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_HEAD = 8 * 1024

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"(\xb5/\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"RIFF", "sound, a picture or video"),
    (b"ID3", "sound"),
    (b"OggS", "sound or video"),
)
# The four-byte mark first: UTF-32 LE begins with UTF-16's.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Binary:
    """Not text; `kind` is how a person calls it."""

    kind: str


@dataclass(frozen=True, slots=True)
class Text:
    """Text behind a mark of `mark` bytes, in `encoding`; bytes that are no UTF-8 are read as Latin-1 line by line."""

    encoding: str
    mark: int


def head(fd: int) -> bytes:
    return os.pread(fd, _HEAD, 0)


def sniff(start: bytes) -> Binary | Text:
    """What the first bytes of a file say it is."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return Text(encoding, len(mark))
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return Binary(kind)
    if b"\x00" in start:
        return Binary("binary data")
    return Text("utf-8", 0)


def unread(fd: int) -> str:
    """Words for what lies behind the bytes that are ever read; empty where all are."""
    behind = os.fstat(fd).st_size - MOST_BYTES
    return f"only the first {MOST_BYTES:,} bytes can be read, {behind:,} more are in the file" if behind > 0 else ""


def chunks(fd: int, kind: Text) -> Iterator[bytes]:
    """The text as UTF-8, or as it stands where its bytes are a one-byte encoding; ends after `MOST_BYTES`."""
    decoder = None if kind.encoding == "utf-8" else codecs.getincrementaldecoder(kind.encoding)("replace")
    at = kind.mark
    while at < MOST_BYTES:
        chunk = os.pread(fd, min(_CHUNK, MOST_BYTES - at), at)
        if not chunk:
            break
        at += len(chunk)
        yield chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "replace")


def lines(source: Iterator[bytes], most: int) -> Iterator[tuple[bytes, int]]:
    """Each line without its end, cut at `most` bytes, and how long it really is."""
    kept, length = b"", 0
    for chunk in source:
        first, *others = chunk.split(b"\n")
        kept, length = kept + first[: max(0, most - len(kept))], length + len(first)
        for piece in others:
            yield _without_return(kept, length)
            kept, length = piece[:most], len(piece)
    if length:
        yield _without_return(kept, length)


def _without_return(kept: bytes, length: int) -> tuple[bytes, int]:
    if len(kept) == length and kept.endswith(b"\r"):
        return kept[:-1], length - 1
    return kept, length


def decode(line: bytes) -> str:
    """The line as text: UTF-8, else Latin-1, in which every byte is a letter."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        # A line cut inside a character is still UTF-8.
        if error.end == len(line) and len(line) - error.start < 4 and error.reason == "unexpected end of data":
            return line[: error.start].decode()
        return line.decode("latin-1")
