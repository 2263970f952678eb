"""Sizes, names and words: what the house allows nobody, without exceptions."""

from __future__ import annotations

import re

from tests.architecture.source import ROOMS, ROOT, functions, name_of, product_files, python_files

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
# A file so named is where things go whose owner nobody looked for.
OWNERLESS = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc"})
UNFINISHED = re.compile(r"#.*\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|raise NotImplemented" + r"Error")
SKIPPED = re.compile(r"pytest\.(?:skip|xfail|importorskip)\b|mark\.(?:skip|skipif|xfail)\b")
BARE_IGNORE = re.compile(r"#\s*(?:type:\s*ignore|pyright:\s*ignore)(?!\[[\w, -]+\].*\S)")


def test_no_product_file_is_longer_than_400_lines() -> None:
    sizes = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in product_files()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_no_product_function_is_longer_than_60_lines() -> None:
    sizes = {
        f"{name_of(path)}:{found.name}": (found.end_lineno or found.lineno) - found.lineno + 1
        for path in python_files(*ROOMS)
        for found in functions(path)
    }
    assert {name: size for name, size in sizes.items() if size > LONGEST_FUNCTION} == {}


def test_every_file_is_named_for_what_it_owns() -> None:
    paths = [*product_files(), *python_files("tests")]
    assert [name_of(path) for path in paths if OWNERLESS & {path.stem, *path.relative_to(ROOT).parts}] == []


def test_nothing_is_left_unfinished() -> None:
    assert [name_of(path) for path in product_files() if UNFINISHED.search(path.read_text("utf-8"))] == []


def test_no_test_is_skipped() -> None:
    here = ROOT / "tests" / "architecture"
    paths = [path for path in python_files("tests") if here not in path.parents]
    assert [name_of(path) for path in paths if SKIPPED.search(path.read_text("utf-8"))] == []


def test_every_ignored_type_error_names_its_rule_and_its_reason() -> None:
    found = [
        f"{name_of(path)}:{number}"
        for path in python_files(*ROOMS, "tests")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if BARE_IGNORE.search(line)
    ]
    assert found == []
