"""Mail as text: the headers a person reads, the first text part, attachments by name; message by message.

Runs in a child process only: what it parses was written by strangers.
"""

from __future__ import annotations

import email
from collections.abc import Iterator
from email.header import decode_header, make_header
from email.message import Message
from html.parser import HTMLParser

_MOST_MESSAGE = 1024 * 1024
_MOST_BODY = 8_000
_MOST_HEADER = 500
_MOST_PARTS = 200
_SHOWN = ("From", "To", "Cc", "Date", "Subject")


def mbox(source: Iterator[bytes]) -> Iterator[bytes]:
    """Each message of an mbox, under a line that counts it."""
    for number, (raw, length) in enumerate(_messages(source), 1):
        yield _render(raw, length, f"--- message {number} ---").encode("utf-8", "replace")


def single(source: Iterator[bytes]) -> Iterator[bytes]:
    """The one message of a Maildir or .eml file."""
    kept, length = bytearray(), 0
    for chunk in source:
        length += len(chunk)
        kept += chunk[: max(0, _MOST_MESSAGE - len(kept))]
    yield _render(bytes(kept), length, "").encode("utf-8", "replace")


def _messages(source: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """The messages between lines that begin with `From `, each cut at a megabyte, and how long each was."""
    kept, length, began, blank = bytearray(), 0, False, True
    for line in _lines(source):
        if blank and line.startswith(b"From "):
            if began:
                yield bytes(kept), length
            kept, length, began = bytearray(), 0, True
        elif began:
            length += len(line)
            if len(kept) < _MOST_MESSAGE:
                kept += line[1:] if line.lstrip(b">").startswith(b"From ") and line[:1] == b">" else line
        blank = line in (b"\n", b"\r\n")
    if began:
        yield bytes(kept), length


def _lines(source: Iterator[bytes]) -> Iterator[bytes]:
    """Lines with their ends; one longer than a message is given in pieces."""
    rest = b""
    for chunk in source:
        *whole, rest = (rest + chunk).splitlines(keepends=True) or [b""]
        if rest.endswith(b"\n") or len(rest) > _MOST_MESSAGE:
            whole.append(rest)
            rest = b""
        yield from whole
    if rest:
        yield rest


def _render(raw: bytes, length: int, title: str) -> str:
    message = email.message_from_bytes(raw)
    lines = [title] if title else []
    lines += [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    body, attachments = _parts(message)
    lines += [f"Attached: {name}" for name in attachments]
    if length > len(raw) + 4096:
        lines.append(f"[message of {length:,} bytes, of which the first {len(raw):,} were read]")
    return "\n".join([*lines, "", body, ""]) + "\n"


def _header(message: Message, name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    text = " ".join(_decoded(str(value)).split())
    return text if len(text) <= _MOST_HEADER else text[:_MOST_HEADER] + "…"


def _parts(message: Message) -> tuple[str, list[str]]:
    plain_text: str | None = None
    html: str | None = None
    attachments: list[str] = []
    for number, part in enumerate(message.walk()):
        if number >= _MOST_PARTS:
            attachments.append("[and more parts]")
            break
        if part.is_multipart():
            continue
        kind, name = part.get_content_type(), part.get_filename()
        if name or part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
            attachments.append(_attachment(part, name, kind))
        elif kind == "text/html":
            html = html or _text(part)
        elif plain_text is None:
            plain_text = _text(part)
    if plain_text is None and html is not None:
        plain_text = _without_tags(html)
    return _bounded((plain_text or "").strip("\r\n")), attachments


def _attachment(part: Message, name: str | None, kind: str) -> str:
    payload = part.get_payload(decode=True)
    size = len(payload) if isinstance(payload, bytes) else 0
    shown = " ".join(_decoded(name or "without a name").split())[:200]
    return f"{shown} ({kind}, {size:,} bytes)"


def _decoded(name: str) -> str:
    """The words of a header; one that cannot be decoded is shown as it came."""
    try:
        return str(make_header(decode_header(name)))
    except (ValueError, LookupError, UnicodeError):
        return name


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeError):
        return data.decode("utf-8", "replace")


def _bounded(body: str) -> str:
    body = body.replace("\r\n", "\n")
    if len(body) <= _MOST_BODY:
        return body
    return f"{body[:_MOST_BODY]}\n[body cut: {len(body) - _MOST_BODY:,} more characters; raw: true shows all]"


class _Words(HTMLParser):
    """Collects what is between tags, without style and script."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._hidden += tag in ("style", "script")
        if tag in ("br", "p", "div", "tr", "li", "h1", "h2", "h3"):
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in ("style", "script")))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def _without_tags(html: str) -> str:
    parser = _Words()
    parser.feed(html[: _MOST_BODY * 20])
    lines = (" ".join(line.split()) for line in "".join(parser.words).split("\n"))
    return "\n".join(line for line in lines if line)
