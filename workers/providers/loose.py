"""Owns how what a provider said is taken for an object, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def object_of(told: object) -> Mapping[str, Any]:
    """The object, or an empty one where it is none."""
    return cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}
