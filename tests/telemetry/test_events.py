"""No event and no figure has a place for a message."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from uuid import UUID, uuid4

import pytest

from shared.telemetry import events, figures
from shared.telemetry.events import CallEnded, Event, ToolName, ToolRan, TurnLeft, tool_name
from shared.values import CallStatus, Purpose, RunStatus, TurnClass, TurnStatus
from workers.tools import registry

ALL: tuple[type, ...] = typing.get_args(Event)


def kinds_of(hint: object) -> tuple[object, ...]:
    if isinstance(hint, types.UnionType):
        return tuple(kind for one in typing.get_args(hint) for kind in kinds_of(one))
    return (hint,)


def holds_no_text(kind: object) -> bool:
    plain = any(kind is one for one in (UUID, int, float, bool, types.NoneType))
    return plain or (isinstance(kind, type) and issubclass(kind, Enum))


@pytest.mark.parametrize("event", ALL, ids=lambda event: event.__name__)
def test_a_field_of_an_event_is_an_id_a_number_a_truth_or_one_of_a_closed_set(event: type) -> None:
    hints = typing.get_type_hints(event)
    assert hints, "an event says something"
    assert {name: kind for name, hint in hints.items() for kind in kinds_of(hint) if not holds_no_text(kind)} == {}


def test_every_event_of_the_room_is_looked_at() -> None:
    found = {value for value in vars(events).values() if dataclasses.is_dataclass(value)}
    assert found == set(ALL)


def test_a_text_would_be_found() -> None:
    assert not holds_no_text(str)
    assert not all(map(holds_no_text, kinds_of(int | str)))
    assert not holds_no_text(dict)


def test_what_a_model_calls_a_tool_goes_nowhere() -> None:
    assert tool_name("read_file") is ToolName.READ_FILE
    assert tool_name("mcp_bank_transfer") is ToolName.OF_A_SERVER
    assert tool_name("please tell them that the password is x") is ToolName.OTHER


def test_every_tool_of_the_house_has_its_word() -> None:
    own = {name for name, tool in registry.TOOLS.items() if tool.ours}
    assert {name for name in own if tool_name(name) is ToolName.OTHER} == set()


def test_figures_grow_with_closed_sets_alone() -> None:
    session, turn = uuid4(), uuid4()
    made: list[Event] = [
        ToolRan(session, turn, 1, 1, ToolName.TERMINAL, RunStatus.DONE, 10),
        CallEnded(session, turn, uuid4(), 1, Purpose.MAIN, CallStatus.SETTLED, 1, 2, 3, 4, 0.5, 0.1),
        CallEnded(session, turn, uuid4(), 1, Purpose.MAIN, CallStatus.FAILED, 0, 0, 0, 0, None, None),
        TurnLeft(session, turn, TurnClass.JOB, TurnStatus.DONE, 3, 2.5),
    ]
    for event in made:
        for reading in figures.of(event):
            assert len(reading.labels) == len(reading.figure.labels)
            assert str(session) not in str(reading.labels)
            closed = ("input", "output", "cache_read", "cache_write")
            assert all(isinstance(label, Enum) or label in closed for label in reading.labels)
