"""Field types that requests share, each with the fault it names."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field

from shared import titles
from shared.text import clean_text

MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/@+\-]*$"


def _storable(text: str) -> str:
    return clean_text(text)


def not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _title(text: str) -> str:
    return titles.clean(clean_text(text), titles.MOST_OF_PERSON)


Line = Annotated[str, Field(max_length=500), AfterValidator(_storable)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable), AfterValidator(not_blank)]
Note = Annotated[str, Field(max_length=2_000), AfterValidator(_storable), AfterValidator(str.strip)]
Words = Annotated[str, Field(max_length=200_000), AfterValidator(_storable)]
Path = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(_storable)]
Title = Annotated[str, Field(max_length=500), AfterValidator(_title)]
ModelName = Annotated[str, Field(min_length=1, max_length=200, pattern=MODEL_NAME)]
ProfileName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._\-]*$")]
Dollars = Annotated[Decimal, Field(gt=0, le=1_000_000, max_digits=20, decimal_places=12)]
Steps = Annotated[int, Field(strict=True, ge=1, le=1000)]
