"""A session's title, asked of the auxiliary chain by a housekeeping turn once the first answer is there: one small call
with a prompt of its own, reserved and booked like any other, and never a second one."""

from __future__ import annotations

import structlog

from shared import readable, titles
from shared.errors import LeaseLost
from shared.providers import chains
from shared.store.statements import one
from shared.store.statements import titles as statements
from shared.values import Purpose
from workers import conversing, fence, recording, reserving, routing
from workers.gathering import NOTHING
from workers.held import Held, Interrupt
from workers.ports import Ports
from workers.prompt import title as prompt
from workers.reserving import Planned

_log = structlog.stdlib.get_logger(__name__)


def write(ports: Ports, held: Held) -> None:
    """Ask for a title where this turn was admitted for it. Whatever comes of that, it is not asked again: the first
    line that was said stands where no title came. Raises LeaseLost."""
    if held.prefix is None:
        return
    prefix = {"digest": prompt.PREFIX.digest, "system_text": prompt.PREFIX.system_text}
    if not fence.write(ports, held, statements.TITLE_BEGIN, prefix)["due"]:
        return
    said = _asked(ports, held, _material(ports, held))
    title = titles.of_model(said) if said is not None else None
    if title is not None:
        fence.write(ports, held, statements.TITLE_WRITTEN, {"title": title})
    _log.info("title.asked", session=str(held.claim.session), written=title is not None)


def _material(ports: Ports, held: Held) -> str:
    row = ports.database.read(lambda c: one(c, statements.TITLE_MATERIAL, {"session": held.claim.session})) or {}
    return prompt.tail(readable.text_of(row.get("said") or "[]"), row.get("answer") or "")


def _asked(ports: Ports, held: Held, tail: str) -> str | None:
    """What the first model of the chain says for which a call can be reserved. None where nobody says anything."""
    for link in dict.fromkeys(chains.auxiliary(ports.settings.auxiliary)):
        with routing.lent(ports, held, link):
            planned = reserving.reserve(ports, held, NOTHING, Purpose.TITLE, tail=tail)
            if not isinstance(planned, Planned):  # no price, no money, or somebody spoke: no title is worth a wait
                continue
            came = conversing.converse(ports, held, planned)
            if recording.record(ports, held, planned, conversing.aside(held, planned, came)).cancel_requested:
                held.interrupt(Interrupt.CANCEL)
        if isinstance(came, conversing.Cut) and came.reason is Interrupt.LOST:
            raise LeaseLost
        return came.reply.text if isinstance(came, conversing.Answered) else None
    return None
