"""Which files of a workspace no run may write: those that steer later behaviour, and the service's own."""

from __future__ import annotations

from shared.gate import steering


def steers(parts: tuple[str, ...]) -> bool:
    """Whether the file or folder `parts` below a workspace is one of them."""
    return steering.steers(parts) or steering.own(parts)
