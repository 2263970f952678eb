"""Readable text of what a web server sent. Parses foreign input: runs in a sealed child process only."""

from __future__ import annotations

import json

from shared.text import clean_text
from workers.tools.context import ToolRefused
from workers.web.wire import Page

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/toml")
_HIDDEN = [
    "nav", "footer", "template", "[hidden]", '[aria-hidden="true"]', '[style*="display:none"]',
    '[style*="display: none"]', '[style*="visibility:hidden"]', '[style*="visibility: hidden"]',
]  # fmt: skip
"""What a person who looks at the page does not see, or has seen on each page before: instructions hide there."""
_LEAST_MAIN = 400
_MOST_TITLE = 300


def text(page: Page) -> tuple[str, str]:
    """Title (may be empty) and text. Raises `ToolRefused` for what is no text."""
    if page.kind in _HTML:
        return _of_html(page)
    if page.kind.startswith("text/") or page.kind in _TEXT or page.kind.endswith(("+json", "+xml")):
        words = clean_text(_decoded(page))
        return "", _indented(words) if "json" in page.kind else words
    raise ToolRefused(f"this is {page.kind[:80]}, {len(page.body):,} bytes; only pages and text are read")


def _of_html(page: Page) -> tuple[str, str]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415 - of a child that reads a page, alone
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415

    tree = HTMLTree.parse(_decoded(page))
    title = " ".join((tree.title or "").split())[:_MOST_TITLE]
    main = extract_plain_text(tree, preserve_formatting=True, main_content=True, links=True, skip_elements=_HIDDEN)
    if len(main) < _LEAST_MAIN:  # a short page is all main content
        main = extract_plain_text(tree, preserve_formatting=True, links=True, skip_elements=_HIDDEN)
    return clean_text(title), clean_text(main).strip()


def _decoded(page: Page) -> str:
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding  # noqa: PLC0415

    try:
        return page.body.decode(page.charset or "utf-8")
    except (LookupError, UnicodeDecodeError):
        # A cut may go through a character: what was declared is believed while it is at all readable.
        return str(bytes_to_str(page.body, str(detect_encoding(page.body)), errors="replace"))


def _indented(words: str) -> str:
    """One line of JSON is read in parts badly."""
    try:
        return json.dumps(json.loads(words), indent=1, ensure_ascii=False) if words.count("\n") < 3 else words
    except (ValueError, RecursionError):
        return words
