"""The lock: every package by hash, no host named, and the product's part of it in step with the whole."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT

LOCK = ROOT / "requirements" / "lock.txt"
PRODUCT = ROOT / "requirements" / "product.txt"
LOCAL_MODEL = ROOT / "requirements" / "local-model.txt"
ALL = [LOCK, PRODUCT, LOCAL_MODEL]
_HOST = re.compile(r"://|--(?:index-url|extra-index-url|find-links|trusted-host)|\b[\w-]+\.(?:org|com|io|net|dev)\b")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)")


def packages(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by name."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    blocks = re.split(r"\n(?=[A-Za-z0-9])", path.read_text("utf-8"))
    for block in blocks:
        pinned = _PINNED.match(block)
        assert pinned is not None, block.splitlines()[0]
        hashes = frozenset(re.findall(r"--hash=(sha256:[0-9a-f]{64})", block))
        found[canonicalize_name(pinned.group(1))] = (pinned.group(2), hashes)
    return found


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_the_lock_names_no_host(path: Path) -> None:
    assert [line for line in path.read_text("utf-8").splitlines() if _HOST.search(line)] == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_package_is_pinned_by_hash(path: Path) -> None:
    assert [name for name, (_, hashes) in packages(path).items() if not hashes] == []


def test_the_products_part_agrees_with_the_whole_lock() -> None:
    whole = packages(LOCK)
    assert {name: pin for name, pin in packages(PRODUCT).items() if whole.get(name) != pin} == {}


def test_the_lock_holds_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    product = [*project["dependencies"], *extras["local"], *extras["build"]]
    for asked, path in ((product, PRODUCT), ([*product, *extras["test"]], LOCK)):
        pins = packages(path)
        for requirement in map(Requirement, asked):
            version, _ = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement} against {version}"
