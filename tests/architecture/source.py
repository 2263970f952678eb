"""Owns which files the rules of the house are about."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "deploy", "scheduler", "shared", "workers")
WRITTEN = frozenset({".py", ".sql", ".html", ".js", ".css", ".sh", ".toml", ".yaml", ".yml"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def product_files() -> Iterator[Path]:
    """Everything a person wrote in the rooms, and the script at the door."""
    yield ROOT / "dev"
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in WRITTEN and path.is_file():
                yield path


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))
