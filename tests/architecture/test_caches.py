"""No cache of a function grows with what users make: each has a size, or takes what the source alone says."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.source import ROOMS, functions, name_of, python_files

MOST = 512
OF_THE_SOURCE = {"shared/gate/options.py:names": "words of tables and rules, each written in a file of shared/gate"}
"""Caches without a size, by whose every argument is a constant of the source, and why that is so."""


def caches(path: Path) -> dict[str, int | None]:
    """By function, how many results it keeps; None: all. A function without arguments has one."""
    found: dict[str, int | None] = {}
    for function in functions(path):
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = ast.unparse(decorator if call is None else call.func).rpartition(".")[2]
            if name == "lru_cache":
                found[function.name] = _size(call)
            elif name == "cache":
                found[function.name] = None if ast.unparse(function.args) else 1
    return found


def _size(call: ast.Call | None) -> int | None:
    given = [] if call is None else [*call.args, *(one.value for one in call.keywords if one.arg == "maxsize")]
    if not given:
        return 128  # Python's own
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, int) else None


def test_every_cache_of_a_function_has_a_size() -> None:
    files = {name_of(path): caches(path) for path in python_files(*ROOMS)}
    found = {f"{file}:{name}": size for file, each in files.items() for name, size in each.items()}
    assert found
    assert {name for name, size in found.items() if size is None} == set(OF_THE_SOURCE)
    assert {name: size for name, size in found.items() if size is not None and size > MOST} == {}


def test_a_cache_without_a_size_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        "@functools.cache\ndef a(x): ...\n@cache\ndef b(): ...\n@lru_cache(maxsize=None)\ndef c(x): ...\n"
        "@lru_cache\ndef d(x): ...\n@lru_cache(64)\ndef e(x): ...\n@lru_cache(maxsize=9_000)\ndef f(x): ...\n"
    )
    assert caches(path) == {"a": None, "b": 1, "c": None, "d": 128, "e": 64, "f": 9_000}
