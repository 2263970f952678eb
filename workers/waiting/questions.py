"""A question to the person: asked once, answered once, and after its limit answered by what the model can do itself."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.rows import DictRow

from shared.ids import uuid7
from shared.store.statements import every, waiting
from shared.text import clean_text
from shared.values import EventKind, ParkReason, RunStatus
from workers import fence
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.recording import Run
from workers.waiting import around
from workers.waiting.state import Stand, Wait, answered


def stand(ports: Ports, held: Held, run: Run, arguments: Mapping[str, object]) -> Stand:
    """How the question stands; it is asked now where it was not. Raises LeaseLost."""
    row = _row(ports, held, run)
    if row is None:
        question = clean_text(str(arguments["question"]))
        if not question.strip():
            return answered(run, "the question is blank: say what the person is to answer", RunStatus.FAILED)
        no = around.denied(held, run, arguments)
        if no is not None:
            return no
        _ask(ports, held, run, question)
        row = _row(ports, held, run)
    elif row["status"] == "open" and row["over"]:
        close(ports, held, "expired", None, due=True)
        row = _row(ports, held, run)
    assert row is not None
    match row["status"]:
        case "open":
            return Wait(ParkReason.CLARIFY, ports.settings.clarify_limit_s)
        case "answered":
            text = f"{row['answered_by']} answered: {row['answer']}" if row["answered_by"] else str(row["answer"])
            return around.seen(held, run, arguments, answered(run, text))
        case "expired":
            hours = ports.settings.clarify_limit_s / 3600
            text = f"nobody answered within {hours:g} h. Take the likeliest reading, say which you took, and go on."
            return answered(run, text)
        case _:
            return answered(run, "the question is no longer open", RunStatus.CANCELLED)


def close(ports: Ports, held: Held, status: str, note: str | None, *, due: bool = False) -> int:
    """End what is still open of this turn (with `due`, only what is past its limit). Returns how many."""
    row = fence.write(ports, held, waiting.CLOSE_QUESTIONS, {"status": status, "note": note, "due": due})
    return row["closed"]


def _ask(ports: Ports, held: Held, run: Run, question: str) -> None:
    params = {
        "question_id": uuid7(), "step": run.step, "ordinal": run.ordinal, "question": question,
        "limit_s": ports.settings.clarify_limit_s,
    }  # fmt: skip
    row = fence.write(ports, held, waiting.ASK_PERSON, params)
    if row["id"] is not None:
        emit(
            ports, held, EventKind.CLARIFY_REQUESTED, step=run.step, ordinal=run.ordinal, question=question,
            id=str(row["id"]),
        )  # fmt: skip


def _row(ports: Ports, held: Held, run: Run) -> DictRow | None:
    params = {"turn": held.claim.turn, "step": run.step}
    found = ports.database.read(lambda c: every(c, waiting.QUESTIONS_OF_STEP, params))
    return next((row for row in found if row["ordinal"] == run.ordinal), None)
