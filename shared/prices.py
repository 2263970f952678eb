"""Prices as a team writes them down: of models that no list knows, or that cost it something else.

A table `[prices.PROVIDER."MODEL"]` in `nightshift.toml`, dollars a million tokens by bucket. What it does not name is
as the list has it, and unknown where the list has nothing: nothing is taken for zero but a 0 that stands there.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field

from shared.providers.table import TABLE

Rate = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None


class OwnPrice(BaseModel):
    """Dollars a million tokens, at every size of the prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Rate = None
    output: Rate = None
    cache_read: Rate = None
    cache_write_5m: Rate = None
    cache_write_1h: Rate = None


Prices = dict[str, dict[str, OwnPrice]]
"""By provider (its name with us) and model."""


def table(value: Any) -> Any:
    """What stands in the file or the variable, as a mapping. Raises ValueError."""
    if isinstance(value, str):
        value = json.loads(value, parse_float=Decimal) if value.strip() else {}
    if isinstance(value, dict):
        for name, models in cast("dict[object, object]", value).items():
            if str(name).partition("/")[0] not in TABLE:  # `anthropic/eu` is one of two of a kind
                raise ValueError(f"there is no provider {name!r}: a price is of one of {', '.join(TABLE)}")
            if not isinstance(models, dict) or any(not one for one in cast("dict[object, object]", models).values()):
                raise ValueError(f'a price is a table [prices.{name}."MODEL"] that names at least one bucket')
    return cast("object", value)
