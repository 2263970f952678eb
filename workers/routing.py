"""Which model and which key the next call goes to: the session's own while it takes calls, else the next of its chain.

Invariant: a turn waits or ends for want of a provider only where no link of its chain takes a call. What a link cannot
do for this turn (`refused`) is not asked of it again in this turn; what failed for a while (`avoided`) is asked last.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from shared.errors import SettingsError
from shared.providers import chains
from shared.providers.chains import Link
from shared.providers.credentials import Credential
from shared.store import windows
from workers.held import Held
from workers.manners import headers
from workers.manners.terms import NOT_TOLD, Asked, Told, Took, Wait
from workers.ports import Ports
from workers.providers.client import Client
from workers.providers.failures import IN_PLACE_S, Recovery
from workers.providers.replies import Usage
from workers.providers.routes import unset

FIRST_REST_S, LONGEST_REST_S = 0.25, 60.0
"""For how long a key, or a provider, is left alone that did not say for how long: doubling from strike to strike, and
never longer than the turn that it failed waits before it tries again."""
REFUSED_S = 300.0
"""For how long a key that was refused is left alone. It is read again before; one that was exchanged is another."""
STRIKES = 2
"""So many failures in a row and a provider counts as out where somebody else can answer."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to one call, booked at its key. `tokens` is what was booked for it, `strikes` how often the key or its
    provider failed in a row before: then this call is the probe."""

    link: Link
    credential: Credential
    client: Client
    asked: Asked = field(repr=False)
    wait_s: float
    strikes: int

    @property
    def tokens(self) -> float:
        return self.asked.tokens


@dataclass(frozen=True, slots=True)
class Later:
    """No call can go out for so long. `resting`: because what could take it is out, not because its limit is used.
    `probed`: a turn is asking it at this moment whether it is out still."""

    wait_s: float
    resting: bool
    probed: bool = False


@dataclass(frozen=True, slots=True)
class Nobody:
    """No link of the chain will take this turn's calls before somebody changes something."""

    code: str
    why: str


def current(held: Held) -> Link:
    return Link(held.claim.provider, held.claim.model)


def order(ports: Ports, held: Held) -> tuple[Link, ...]:
    """The links that may be asked, in their order: where this turn is, then its chain, what failed it last."""
    chain = chains.chain(ports.settings, held.claim.profile, held.primary)
    at = current(held)
    first = (at, *(one for one in chain if one != at)) if at != held.primary else chain
    open_ = [one for one in first if one not in held.refused]
    return tuple(sorted(open_, key=lambda one: one in held.avoided))


def choose(
    ports: Ports, held: Held, tokens: float, answers: Callable[[Ticket], bool | None], *, patient: bool = True
) -> Ticket | Later | Nobody:
    """A booked call at the first link that takes one now, or within what is waited in place. `answers` asks a link that
    was out, with its ticket, before a conversation goes back to it; while another turn asks, a `patient` one waits for
    what it hears rather than go elsewhere. Where a link may not be asked that for want of money or a price and there is
    no other, the conversation's own call is booked there, and says so."""
    soonest: Later | None = None
    why: Nobody | None = None
    unasked: Link | None = None
    rested = False
    for link in order(ports, held):
        got = take(ports, held, link, tokens)
        if isinstance(got, Ticket) and got.strikes and held.spoke not in (None, str(link)):
            # A probe of its own would cost this conversation an epoch there and one back.
            said = answers(got)
            if not said:
                unasked, rested = (unasked or link, rested) if said is None else (unasked, True)
                continue
            got = take(ports, held, link, tokens)
        match got:
            case Ticket():
                return got
            case Later(wait_s, resting, probed):
                if not resting or (probed and patient):  # a limit that is used up is no failure: all wait their turn
                    return got
                if soonest is None or wait_s < soonest.wait_s:
                    soonest = got
                if wait_s <= IN_PLACE_S and link == current(held) and not _out(ports, held, link):
                    return got
            case Nobody():
                held.refused[link] = (got.code, got.why)
                why = why or got
    if soonest is not None:
        return soonest
    if unasked is not None and not rested:
        return take(ports, held, unasked, tokens)
    if rested:
        return Later(FIRST_REST_S, resting=True)
    if why is not None:
        return why
    code, sentence = next(iter(held.refused.values()), ("provider_not_configured", "no model can be asked"))
    return Nobody(code, sentence)


def rest(ports: Ports, held: Held, ticket: Ticket) -> None:
    """Its provider is out still: it is left alone longer."""
    at = held.now().timestamp() * 1_000
    for name in (ticket.credential.id, ticket.link.provider):
        ports.routes.fleet.cool(name, at, None, FIRST_REST_S, LONGEST_REST_S)


def take(ports: Ports, held: Held, link: Link, tokens: float) -> Ticket | Later | Nobody:
    """One call at one link: on the turn's own keys, else, where these take none, on the team's."""
    routes = ports.routes
    try:
        routes.declared(link.provider)
        pools = routes.pools(link.provider, held.claim.owner)
        if not pools:
            raise unset(link.provider)
        told = ports.settings.providers.get(link.provider)
        soonest: Wait | None = None
        for pool in pools:
            asked = Asked(
                link.provider, tuple(one.id for one in pool), (routes.limit(link.provider),) * len(pool), tokens,
                held.now().timestamp() * 1_000, told.order if told is not None else "fill_first",
                next((at for at, one in enumerate(pool) if one.id == held.key), None),
            )  # fmt: skip
            took = routes.fleet.take(asked)
            if isinstance(took, Took):
                credential = pool[took.at]
                client = routes.client(credential)
                return Ticket(link, credential, client, asked, took.wait_ms / 1_000, took.strikes)
            if soonest is None or took.wait_ms < soonest.wait_ms:
                soonest = took
        assert soonest is not None
        held.rested = soonest.strikes
        return Later(soonest.wait_ms / 1_000, soonest.resting, soonest.probed)
    except SettingsError as error:
        code = "provider_not_configured" if error.code == SettingsError.code else error.code
        return Nobody(code, f"{link.provider} cannot be asked here: {error.message}")


def stands(ports: Ports, held: Held, ticket: Ticket, *, waited: bool = False) -> float | None:
    """After its wait: 0 where the call may go out, for how many seconds more it is held back (at most once: `waited`),
    None where it does not stand."""
    one = replace(
        ticket.asked, keys=(ticket.credential.id,), limits=ticket.asked.limits[:1], preferred=None,
        now_ms=held.now().timestamp() * 1_000, booked_ms=ticket.asked.now_ms, waited=waited,
    )  # fmt: skip
    got = ports.routes.fleet.still(one, probe=ticket.strikes > 0)
    if isinstance(got, Took):
        return 0.0
    return None if got.resting else got.wait_ms / 1_000


def unsent(ports: Ports, held: Held) -> None:
    """The booked call, if there is one, will not go out. A probe would keep everybody waiting for its answer."""
    ticket, held.ticket = held.ticket, None
    if isinstance(ticket, Ticket) and ticket.strikes:
        ports.routes.fleet.release(ticket.credential.id, ticket.link.provider)


def heard(ports: Ports, held: Held, ticket: Ticket, limits: headers.Headers) -> None:
    """An answer begins: what its headers tell of the key is true now, and not when the last word has come."""
    now = held.now()
    told = headers.read(limits, now)
    if told != NOT_TOLD:
        at = now.timestamp() * 1_000
        ports.routes.fleet.tell(ticket.link.provider, ticket.credential.id, told, at, ok=False)


def answered(ports: Ports, held: Held, ticket: Ticket, limits: headers.Headers, usage: Usage | None) -> None:
    """A call went well, and what it weighed. Its headers were `heard` when it began."""
    now = held.now()
    told = headers.read(limits, now)
    more = 0.0
    if usage is not None and told.tokens is not None:
        more = usage.input + usage.cache_write_5m + usage.cache_write_1h - ticket.tokens
    ports.routes.fleet.tell(
        ticket.link.provider, ticket.credential.id, NOT_TOLD, now.timestamp() * 1_000, ok=True, more=more,
        strikes=ticket.strikes,
    )  # fmt: skip
    held.key = ticket.credential.id


def failed(
    ports: Ports, held: Held, ticket: Ticket, recovery: Recovery, limits: headers.Headers, *, began: bool = False
) -> float:
    """A call failed: its key, or its provider, is left alone by everybody. For how many seconds, 0 where it is not.
    `began`: an answer had, whose head was `heard` then."""
    now = held.now()
    at, fleet = now.timestamp() * 1_000, ports.routes.fleet
    told: Told = headers.read(limits, now)
    if told != NOT_TOLD and not began:
        fleet.tell(ticket.link.provider, ticket.credential.id, told, at, ok=False)
    provider, key = ticket.link.provider, ticket.credential.id
    if (
        ticket.strikes
    ):  # a probe tells of both: a provider that is out is no failure of its key, nor the other way round
        well = key if recovery.rests else provider
        fleet.tell(well, well, NOT_TOLD, at, ok=True, strikes=ticket.strikes)
    # Where nobody would do in its place each turn is to hear at once what is wrong, and none to sleep for it.
    alone = recovery.fatal and not (another_key(ports, held, ticket) or may_leave(ports, held))
    if recovery.cools and not alone:
        asked = REFUSED_S if recovery.fatal else recovery.wait_s
        wait = asked if asked is not None else headers.reset_s(limits, now)
        return fleet.cool(ticket.credential.id, at, wait, FIRST_REST_S, LONGEST_REST_S)[0]
    if recovery.rests:
        wait, held.rested = fleet.cool(provider, at, recovery.wait_s, FIRST_REST_S, LONGEST_REST_S)
        return wait
    if ticket.strikes:
        fleet.tell(provider, ticket.credential.id, NOT_TOLD, at, ok=True, strikes=ticket.strikes)
    return 0.0


def cut(ports: Ports, held: Held, ticket: Ticket, *, began: bool) -> None:
    """A call was stopped by us. A probe that is not waited for tells what it had seen; else another one may go soon."""
    if not ticket.strikes:
        return
    at, fleet = held.now().timestamp() * 1_000, ports.routes.fleet
    if began:
        fleet.tell(ticket.link.provider, ticket.credential.id, NOT_TOLD, at, ok=True, strikes=ticket.strikes)
        return
    for name in (ticket.credential.id, ticket.link.provider):
        fleet.cool(name, at, FIRST_REST_S, FIRST_REST_S, LONGEST_REST_S)


def another_key(ports: Ports, held: Held, ticket: Ticket) -> bool:
    """Whether another key of the same provider, of those that the turn may use, takes calls."""
    pools = ports.routes.pools(ticket.link.provider, held.claim.owner)
    others = tuple(one for pool in pools for one in pool if one.id != ticket.credential.id)
    if not others:
        return False
    limit = ports.routes.limit(ticket.link.provider)
    asked = Asked(
        ticket.link.provider, tuple(one.id for one in others), (limit,) * len(others), 0.0,
        held.now().timestamp() * 1_000,
    )  # fmt: skip
    return isinstance(ports.routes.fleet.still(asked), Took)


def may_leave(ports: Ports, held: Held) -> bool:
    """Whether another link may be asked in place of this one: each is left at most once a claim, so that this ends."""
    at = current(held)
    return at not in held.avoided and any(one != at and one not in held.avoided for one in order(ports, held))


def leave(ports: Ports, held: Held, code: str, why: str) -> bool:
    """Ask this link no more in this turn, where another one may be asked. Whether one may. What is booked there is not
    wanted any more, and would bring the next step back to it."""
    if not may_leave(ports, held):
        return False
    unsent(ports, held)
    held.refused[current(held)] = (code, why)
    return True


def weight(held: Held) -> float:
    """Tokens that the next call is likely to count at its key: all of the conversation where nothing of it can be read
    from the provider's cache. The bill puts it right afterwards."""
    return float(held.baseline[1]) if held.baseline is not None and held.chain is None else 0.0


def aside(ports: Ports, held: Held) -> Ticket | Later | Nobody:
    """For a call that stands beside the conversation: to where the conversation is, or not at all. Where the step has
    booked the probe of that provider, this call is it: by any other it would be shut out."""
    ticket, to = held.ticket, current(held)
    if _probes(ticket, to):
        held.ticket = None
        return replace(ticket, link=to, wait_s=0.0)
    return take(ports, held, current(held), 0.0)


@contextmanager
def lent(ports: Ports, held: Held, link: Link | None) -> Generator[None]:
    """Calls go to another model than the conversation's meanwhile, and carry nothing that is that one's alone. None is
    the conversation's own: then nothing changes."""
    if link is None or link == current(held):
        yield
        return
    claim, limits, ticket, key = held.claim, held.limits, held.ticket, held.key
    shared = _probes(ticket, link)
    held.speak_to(link, windows.of(ports.database, ports.settings, link.provider, link.model))
    held.ticket, held.lent = ticket if shared else None, True
    try:
        yield
    finally:
        held.lent = False
        ticket = held.ticket if shared else ticket
        held.claim, held.limits, held.ticket, held.key = claim, limits, ticket, key


def _probes(ticket: object, link: Link) -> TypeGuard[Ticket]:
    """Whether this booked call is the probe of that link's provider, or of its key there."""
    return isinstance(ticket, Ticket) and ticket.strikes > 0 and ticket.link.provider == link.provider


def _out(ports: Ports, held: Held, link: Link) -> bool:
    """Whether a short rest is one of a provider that is out, and somebody else may answer."""
    chain = chains.chain(ports.settings, held.claim.profile, held.primary)
    return held.rested >= STRIKES and any(one != link and one not in held.refused for one in chain)
