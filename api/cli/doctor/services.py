"""Checks of what runs: broker, API, a worker, a scheduler, the model's provider. None of them spends anything."""

from __future__ import annotations

import httpx
import psycopg
import redis

from api.cli.doctor.finding import Facts, Finding, failed, noted, ok
from shared.providers import resolve

PATIENCE_S = 3.0
_START = "start it: `./dev up` starts a whole stack"


def broker(known: Facts) -> list[Finding]:
    if not known.redis_url:
        return [noted("broker", "not known here: set NIGHTSHIFT_REDIS_URL to have it checked")]
    url = known.redis_url.replace("redis+socket://", "unix://", 1)
    try:
        server = redis.Redis.from_url(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)  # pyright: ignore[reportUnknownMemberType] - untyped in redis-py
        server.ping()  # pyright: ignore[reportUnknownMemberType] - as above
        server.close()
    except (redis.RedisError, ValueError, OSError) as error:
        mend = (
            "check NIGHTSHIFT_REDIS_URL and that the server runs; until then work is found by looking, a second later"
        )
        return [failed("broker", f"{type(error).__name__}: {error}", mend)]
    return [ok("broker", "answers")]


def api(known: Facts) -> list[Finding]:
    if not known.url:
        return [failed("api", "no address: no stack runs here and NIGHTSHIFT_URL is not set", _START)]
    found: list[Finding] = []
    for path, part in (("/healthz", "api"), ("/readyz", "api ready")):
        try:
            answer = httpx.get(known.url + path, timeout=PATIENCE_S)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return [*found, failed(part, f"{known.url} cannot be reached ({type(error).__name__})", _START)]
        if answer.status_code == 200:
            found.append(ok(part, f"{known.url}{path} answers"))
        else:
            mend = "mend what this list says of database, broker and workers; `./dev logs api` says more"
            found.append(failed(part, f"{path} answers {answer.status_code}: {_sentence(answer)}", mend))
    return [*found, _token(known)]


def _sentence(answer: httpx.Response) -> str:
    return " ".join(answer.text.split())[:200]


def _token(known: Facts) -> Finding:
    if not known.token:
        return failed("token", "none", "set NIGHTSHIFT_TOKEN")
    try:
        answer = httpx.get(
            f"{known.url}/v1/sessions",
            params={"limit": 1},
            headers={"authorization": f"Bearer {known.token}"},
            timeout=PATIENCE_S,
        )
    except httpx.HTTPError as error:
        return failed("token", f"no answer ({type(error).__name__})", "see what this list says of the api")
    if answer.status_code == 401:
        return failed("token", "is not accepted", "ask an admin for a new one and set NIGHTSHIFT_TOKEN")
    if answer.status_code >= 400:
        return failed(
            "token", f"the API answers {answer.status_code}: {_sentence(answer)}", "`./dev logs api` says more"
        )
    return ok("token", "is accepted")


def fleet(known: Facts) -> list[Finding]:
    """By the rows that the processes renew: alive is a lease that holds and no stop."""
    if not known.database_url:
        return [noted("fleet", "workers and schedulers are seen through the database, which is not known here")]
    try:
        with psycopg.connect(known.database_url, autocommit=True, connect_timeout=5) as connection:
            rows = connection.execute(
                "select kind, count(*), coalesce(sum(slots), 0) from workers"
                " where stopped_at is null and lease_until > clock_timestamp() group by kind"
            ).fetchall()
    except psycopg.Error as error:
        return [failed("fleet", str(error).strip().splitlines()[0], "see what this list says of the database")]
    alive = {str(kind): (int(count), int(slots)) for kind, count, slots in rows}
    return [_alive("worker", alive), _alive("scheduler", alive)]


def _alive(kind: str, alive: dict[str, tuple[int, int]]) -> Finding:
    count, slots = alive.get(kind, (0, 0))
    if not count:
        lost = "no turn runs" if kind == "worker" else "no job comes due and no dead worker is noticed"
        return failed(
            kind, f"none is alive: {lost}", f"start one: `nightshift {kind}`, or the whole stack by `./dev up`"
        )
    return ok(kind, f"{count} alive" + (f", {slots} slots" if kind == "worker" else ""))


def provider(known: Facts) -> list[Finding]:
    """Reached, and named. Asking for an answer would cost money, so any HTTP answer will do."""
    url = known.provider_url
    if not url and known.settings.provider_key:
        url = resolve.declared(known.settings).base_url
    if not url:
        return [noted("provider", "not known here; without a key or address a stack rehearses with a local stand-in")]
    name = "rehearsal, a local stand-in: nothing is written by a model" if known.is_rehearsal else _kind(known)
    try:
        answer = httpx.get(url, timeout=PATIENCE_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        mend = "check NIGHTSHIFT_PROVIDER_BASE_URL and the network; turns wait and try again meanwhile"
        return [failed("provider", f"{url} cannot be reached ({type(error).__name__}); {name}", mend)]
    if answer.status_code >= 500:
        return [failed("provider", f"{url} answers {answer.status_code}; {name}", "wait for it; turns try again")]
    return [ok("provider", f"{url} answers; {name}")]


def _kind(known: Facts) -> str:
    key = "with a key" if known.settings.provider_key else "without a key here"
    return f"{resolve.name(known.settings)}, model {known.settings.model}, {key}"
