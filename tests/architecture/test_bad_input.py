"""The table of bad input names tests that are there, and leaves out nothing that the issue names."""

from __future__ import annotations

import ast
import re

from tests.ground import ROOT

_ROW = re.compile(r"\| ([^|]+) \| [^|]+ \| `(tests/[\w/]+\.py)::(\w+)` \|")
NAMED = (
    "300 command lines", "newlines", "300 levels", "FIFOs", "devices", "sockets", "sparse 1 TB", "links that change",
    "10 GB", "never-ending", "binary", "terminal escapes", "fork bombs", "memory bombs", "ignore signals", "re-parent",
    "169.254.169.254", "DNS that answers differently", "decompression bomb", "hangs", "dies", "lies about its schema",
    "100 MB", "schemas with cycles", "raises", "returns nothing", "bytes",
)  # fmt: skip
"""As issue 5 names them."""


def test_each_row_has_its_test_and_nothing_is_left_out() -> None:
    lines = (ROOT / "docs" / "bad-input.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")][1:]
    inputs: list[str] = []
    for row in rows:
        found = _ROW.fullmatch(row)
        assert found is not None, row
        inputs.append(found[1])
        tree = ast.parse((ROOT / found[2]).read_text("utf-8"))
        assert found[3] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, row
    assert [word for word in NAMED if not any(word in one for one in inputs)] == []
