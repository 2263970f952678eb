"""Owns the step from parsed JSON to types."""

from typing import Any, TypeGuard

Json = dict[str, Any]


def is_object(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def object_or_empty(value: Any) -> Json:
    """The value where it is an object, else an empty one."""
    return value if is_object(value) else {}
