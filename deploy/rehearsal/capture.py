"""Owns the copies of request bodies that a test asked for; nothing else here ever writes one to disk."""

import re
from pathlib import Path
from typing import Final

import orjson

from deploy.rehearsal.http import TOKEN_HEADER, HttpRequest
from deploy.rehearsal.ledger import Call

_UNSAFE: Final = re.compile(r"[^\w.-]")
_SECRET: Final = frozenset(("authorization", "x-api-key", TOKEN_HEADER))


def keep(directory: Path, call: Call, http: HttpRequest, with_headers: bool) -> None:
    """Write the body as it came to `NNNNNN-SESSION.json`, whole or not at all."""
    name = f"{call.index:06d}-{_UNSAFE.sub('_', call.session or 'none')[:80]}"
    path = directory / f"{name}.json"
    draft = directory / f".{name}.part"
    draft.write_bytes(http.body)
    draft.rename(path)
    if with_headers:
        shown = {key: value for key, value in http.headers.items() if key not in _SECRET}
        (directory / f"{name}.headers.json").write_bytes(orjson.dumps(shown))
