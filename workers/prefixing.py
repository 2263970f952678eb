"""The session's prefix: built once, stored as sent, used from the row ever after, whatever the builder says later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from shared import memory, rates, shared_prefix
from shared.memory import Kind
from shared.providers.chains import Link
from shared.request import blocks, estimate
from shared.request.assembled import Request
from shared.store import memories, transcript, windows
from shared.store.statements import step
from shared.values import EventKind, SessionKind
from workers import fence, snapshot
from workers.emit import emit
from workers.held import Claim, Held
from workers.ports import Ports
from workers.prompt import child, system
from workers.prompt.prefix import prefix_digest
from workers.tools import registry

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Built:
    """A prefix that no row has yet: its name, the system prompt with its lengths, the tools by name and as sent."""

    digest: str
    system: system.SystemPrompt
    tools: tuple[str, ...]
    tools_text: str

    def params(self) -> dict[str, object]:
        """What the statement that saves it wants to know of it."""
        return {
            "digest": self.digest, "system_text": self.system.system_text, "stable_length": self.system.stable_length,
            "context_length": self.system.context_length, "tools_text": self.tools_text,
        }  # fmt: skip


def build_now(ports: Ports, held: Held) -> Built:
    """The session's prefix as it would be made at this moment: tools, skills, memory and profile as they are now, the
    date on which the conversation began. For a new session, and for the epoch that a compaction begins."""
    claim = held.claim
    tools = snapshot.chosen(ports.settings, claim.kind, claim.listed)
    inputs = replace(
        _inputs(ports, claim, tools, of_child=claim.kind is SessionKind.CHILD),
        memory=ports.database.read(lambda c: memories.snapshot(c, claim.session)),
        limits={kind: memory.limit(ports.settings, kind) for kind in Kind},
        skills=ports.settings.skills_folder,
    )
    made = system.build(inputs)
    tools_text = registry.schema_text(tools)
    return Built(prefix_digest(made.system_text, tools_text), made, tools, tools_text)


def ensure(ports: Ports, held: Held) -> None:
    """Adopt a prefix if the session has none yet: its first epoch begins."""
    if held.prefix is not None:
        return
    built = build_now(ports, held)
    params = {**built.params(), "cause": "a new session"}
    row = fence.write(ports, held, step.PREFIX_FIRST, params, landed=step.PREFIX_STANDS)
    held.last_edit = row["last_edit"]
    held.adopt(built.digest, built.tools)
    name_left_out(ports, held, built)


def name_left_out(ports: Ports, held: Held, built: Built) -> None:
    """Once a prefix is adopted: what it was made without, to whoever watches and to the log. No word of it."""
    for left in built.system.left_out:
        emit(ports, held, EventKind.LEFT_OUT, source=left.source, entry=left.entry, why=left.why)
        _log.warning(
            "prompt.left_out", session=str(held.claim.session), source=left.source, entry=left.entry, why=left.why
        )


def key_of_children(ports: Ports, claim: Claim, tools: Sequence[str]) -> str:
    """The name of what this turn's children with these tools will share: tools, stable and context tier. It is told
    when they are made, for what they share is wanted before the first of them has a prompt."""
    built = system.build(_inputs(ports, claim, tuple(tools), of_child=True))
    shared = blocks.split(built.system_text)[:-1]
    return shared_prefix.key(claim.provider, claim.model, registry.schema_text(tools), *shared)


def _inputs(ports: Ports, claim: Claim, tools: tuple[str, ...], *, of_child: bool) -> system.PromptInputs:
    return system.PromptInputs(
        session=str(claim.session),
        model=claim.model,
        provider=claim.provider,
        started=datetime.fromisoformat(claim.session_started),
        zone=ports.settings.team_zone,
        workspace=child.house(claim.workspace, claim.depth),
        attached=claim.folder,
        caller_text=child.FRAME if of_child else "",
        tools=tools,
    )


def begin_epoch(ports: Ports, held: Held, cause: str) -> None:
    """The same prefix again, as an edit: signed reasoning of what stands before it is left out from here on, for good.

    Sent twice, it is two such edits, which say the same.
    """
    row = fence.write(ports, held, step.PREFIX_ADOPT, {"digest": held.prefix, "cause": cause})
    held.new_epoch(row["last_edit"])


def switch(ports: Ports, held: Held, to: Link, why: str) -> None:
    """This turn's calls go to another model from here on. Where the conversation was with one, that is an epoch of its
    own, and whoever watches is told what it costs. Raises LeaseLost."""
    left = held.spoke
    values = {"provider": to.provider, "model": to.model, "to": str(to)}
    if to == held.primary:
        values |= {"provider": None, "model": None}
    if held.prefix is None or left is None or left == str(to):
        if (held.claim.provider, held.claim.model) != (to.provider, to.model):
            fence.write(ports, held, step.SPEAK, values)
            held.speak_to(to, windows.of(ports.database, ports.settings, to.provider, to.model))
        return
    tokens = _size(ports, held, to)
    usd = rates.anew(to.model, tokens, datetime.now(UTC), provider=to.provider, marks=marks(ports, to), own=held.prices)
    priced = "at a price that is not known" if usd is None else f"for about ${usd:.4f}"
    cause = f"from {left} to {to}, {why}: about {tokens} tokens are read anew, {priced}"
    row = fence.write(ports, held, step.SWITCH, {**values, "cause": cause[:2_000]})
    held.speak_to(to, windows.of(ports.database, ports.settings, to.provider, to.model))
    held.baseline, held.spoke = None, str(to)
    held.context = replace(held.context, prefix_warm_until=None)
    held.new_epoch(row["last_edit"])
    emit(
        ports, held, EventKind.MODEL_SWITCHED, left=left, to=str(to), why=why, tokens=tokens,
        cost_usd=None if usd is None else float(usd),
    )  # fmt: skip
    _log.warning(
        "model.switched", session=str(held.claim.session), turn=str(held.claim.turn), left=left, to=str(to), why=why,
        tokens=tokens,
    )  # fmt: skip


def marks(ports: Ports, to: Link) -> bool:
    return ports.routes.declared(to.provider).of_model(to.model).route.marks


def _size(ports: Ports, held: Held, to: Link) -> int:
    """Tokens of the conversation as it stands, as the other model counts them, about."""
    if held.baseline is not None:
        counted_by = (held.spoke or str(to)).partition(":")[2]
        return round(held.baseline[1] * estimate.factor(to.model) / estimate.factor(counted_by))
    return estimate.estimate(held.request or cold_request(ports, held), to.model)


def floor(ports: Ports, held: Held) -> Request:
    """What a probe stands on: the system prompt, and nothing that was said."""
    prefix = held.prefix
    if prefix is None:
        raise RuntimeError("the session has no prefix yet")
    return ports.database.read(lambda c: transcript.floor(c, prefix))


def cold_request(ports: Ports, held: Held, *, final: bool = False) -> Request:
    """The request as the rows make it now: read whole, nothing from memory."""
    prefix = held.prefix
    if prefix is None:
        raise RuntimeError("the session has no prefix yet")
    return ports.database.read(lambda c: transcript.project(c, held.claim.session, prefix, final=final))
