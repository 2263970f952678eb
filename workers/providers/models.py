"""What each model can hold, for the rooms of the providers: the table is `shared.models`, which the API reads too."""

from __future__ import annotations

from shared.models import TABLE, UNKNOWN, Limits, limits, max_output, window

__all__ = ["TABLE", "UNKNOWN", "Limits", "limits", "max_output", "window"]
