"""Bodies of requests. An unknown field is refused by name, so that a misspelt one is not silently ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from api.wire.fields import Dollars, Line, ModelName, Name, Note, Path, ProfileName, Steps, Title, Words, not_blank
from shared.values import Audience, OnBusy

Input = str | list[dict[str, Any]]
INPUT = Field(description="Text, or blocks; text blocks only for now. At most 10 MiB of text, not blank.")


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionAsked(Asked):
    title: Title = Field(default="", description="One line; where none is given, the first line that is said")
    profile: ProfileName = "default"
    model: ModelName | None = None
    cap_usd: Dollars | None = None
    audience: Audience = Audience.PRIVATE
    people: list[UUID] = Field(default=[], max_length=200, description="With audience 'people': who else may see it")
    folder: Path | None = Field(default=None, description="Attached read-only to the workspace; an admin's to give")
    keep_warm: bool = Field(
        default=False, description="Read it before the provider forgets it, while that is cheaper: costs, unattended"
    )


class TurnAsked(Asked):
    input: Input = INPUT
    on_busy: OnBusy = OnBusy.QUEUE
    cap_usd: Dollars | None = None
    max_steps: Steps | None = None


class CapAsked(Asked):
    cap_usd: Dollars | None = Field(description="null takes the cap away")


class SessionChange(Asked):
    """Only what is given changes."""

    title: Annotated[Title, AfterValidator(not_blank)] | None = Field(
        default=None, description="One line of at most 200 characters; no model writes another one over it"
    )
    cap_usd: Dollars | None = Field(default=None, description="null takes the cap away")
    keep_warm: bool = Field(default=False, strict=True, description="As when a session is made; off stops the pings")

    model: ModelName | None = Field(default=None, description="Answers from the next turn on; an epoch of its own")
    provider: Name | None = Field(default=None, description="Where that model is, if it is not where the last one was")

    @model_validator(mode="after")
    def _something(self) -> SessionChange:
        if not self.model_fields_set:
            raise ValueError("give title, cap_usd, keep_warm or model: nothing would change")
        if "title" in self.model_fields_set and self.title is None:
            raise ValueError("title: give some text")
        if "model" in self.model_fields_set and self.model is None:
            raise ValueError("model: a session speaks to one")
        if self.provider is not None and self.model is None:
            raise ValueError("provider: name the model too, for each provider has its own")
        return self


class SteerAsked(Asked):
    input: Input = INPUT


class DecisionAsked(Asked):
    decision: Literal["approve", "deny"]
    scope: Literal["once", "session", "always"] = Field(default="once", description="How far a yes goes")
    note: Note | None = Field(default=None, description="The model reads it where the call is denied")


class StopAsked(Asked):
    scope: Literal["fleet", "person", "job", "profile", "tool"]
    subject: Name | None = Field(default=None, description="Id or name of the person or job; profile; tool")
    cancel: bool = Field(default=False, description="Also cancel what is there now, with its trees")
    note: Note = Field(default="", description="Why; whoever calls a stopped tool reads it")


class RewindAsked(Asked):
    to_turn: UUID = Field(description="Everything from this turn's first message on is taken back, this turn included")


class RestoreAsked(Asked):
    rewind: str | None = Field(
        default=None, pattern=r"^[0-9]{1,18}$", description="`edit` of the rewind to undo; the newest where not given"
    )


class Nothing(Asked):
    """A POST that needs no body."""


class JobAsked(Asked):
    name: Name
    cron: Line = Field(description="Five fields, or an alias such as @daily")
    zone: Line = Field(default="UTC", description="IANA time zone")
    prompt: Words = Field(description="The scaffold: what stays the same from run to run")
    tail: Words = ""
    workspace: Path | None = None
    folder: Path | None = None
    profile: ProfileName = "default"
    model: ModelName | None = None
    cap_usd: Dollars | None = None
    max_steps: Steps | None = None
    deadline_s: int | None = Field(default=None, strict=True, ge=1, le=7 * 86400)
    audience: Literal["private", "team"] = "team"
    deliver_session: UUID | None = None
    deliver_file: Path | None = None
    stop_same: int | None = Field(default=None, strict=True, ge=2, le=100)
    stop_dearer: float | None = Field(default=None, ge=1.1, le=1000, allow_inf_nan=False)


class JobChange(Asked):
    """Only what is given changes; null takes away what may be absent."""

    name: Name | None = None
    cron: Line | None = None
    zone: Line | None = None
    prompt: Words | None = None
    tail: Words | None = None
    workspace: Path | None = None
    folder: Path | None = None
    profile: ProfileName | None = None
    model: ModelName | None = None
    cap_usd: Dollars | None = None
    max_steps: Steps | None = None
    deadline_s: int | None = Field(default=None, strict=True, ge=1, le=7 * 86400)
    audience: Literal["private", "team"] | None = None
    deliver_session: UUID | None = None
    deliver_file: Path | None = None
    stop_same: int | None = Field(default=None, strict=True, ge=2, le=100)
    stop_dearer: float | None = Field(default=None, ge=1.1, le=1000, allow_inf_nan=False)
    paused: bool | None = Field(default=None, strict=True)


class ClockAsked(Asked):
    advance_s: float = Field(gt=0, le=366 * 86400, allow_inf_nan=False)
    jump: bool = Field(default=False, strict=True)
