"""The stack that is hurt is the drill's; tests use the same."""

from deploy.drill.rig import TERMINAL, Pause, Rig, Row, family, slack, stack, until

__all__ = ["TERMINAL", "Pause", "Rig", "Row", "family", "slack", "stack", "until"]
