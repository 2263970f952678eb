"""Owns the HTTP of the command line: errors as `Stop`, and every POST under a key so that it can be sent again."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, cast

import httpx

from api.cli import sse
from api.cli.connection import Target
from api.cli.exits import Exit, Stop, of_code

_WAITS = (0.3, 1.0, 2.0)  # seconds before the second, third and last try
_LONGEST_WAIT = 5.0
_ADVICE: Mapping[int, str] = {
    401: "the token is not accepted: check NIGHTSHIFT_TOKEN",
    403: "this token's role does not allow it",
    404: "no such thing, or not yours to see",
    409: "it is busy with something else",
    422: "the request is not understood",
    429: "too much at once: try again later",
    503: "the service cannot serve right now: `nightshift doctor` says which part is missing",
}


class Client:
    """Requests to one API. GET and keyed POSTs are tried again where no answer came; nothing else is."""

    def __init__(self, target: Target, *, timeout_s: float = 30.0) -> None:
        self.target = target
        self._http = httpx.Client(
            base_url=target.url,
            headers={"authorization": f"Bearer {target.token}", "accept": "application/json"},
            timeout=httpx.Timeout(timeout_s, connect=5.0),
            follow_redirects=False,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str, **query: object) -> Any:
        return self._json(self._send("GET", path, params=_present(query)))

    def get_bytes(self, path: str, **query: object) -> tuple[bytes, Mapping[str, str]]:
        """The body as it came, with the headers."""
        answer = self._send("GET", path, params=_present(query))
        return answer.content, answer.headers

    def post(self, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None) -> Any:
        headers = {"idempotency-key": key or str(uuid.uuid4())}
        return self._json(self._send("POST", path, body=_present(body or {}), headers=headers))

    def patch(self, path: str, body: Mapping[str, object]) -> Any:
        return self._json(self._send("PATCH", path, body=body))

    def put(self, path: str, body: Mapping[str, object]) -> Any:
        return self._json(self._send("PUT", path, body=body))

    def delete(self, path: str) -> Any:
        return self._json(self._send("DELETE", path))

    @contextmanager
    def stream(self, path: str, last_id: str | None, idle_s: float) -> Generator[Iterator[str]]:
        """The lines of an event stream. Raises Stop for a refusal, httpx.TransportError where it breaks."""
        headers = {"accept": "text/event-stream"}
        if last_id:
            headers["last-event-id"] = last_id
        timeout = httpx.Timeout(idle_s, connect=5.0)
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code not in {200, 204}:  # 204: everything up to the end has been sent before
                answer.read()
                raise _refusal(answer)
            yield sse.lines(answer.iter_bytes())

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        head = dict(headers or {})
        content = None
        if body is not None:
            content = json.dumps(body).encode("ascii")  # ASCII: argv may hold lone surrogates
            head["content-type"] = "application/json"
        request = self._http.build_request(
            method, path, params=cast("dict[str, str]", params), content=content, headers=head
        )
        for wait in _WAITS:
            answer = self._try(request, is_last=False)
            again = 0.0 if answer is None else _wait_of(answer)
            if answer is not None and again is None:
                return _accepted(answer)
            time.sleep(max(again or 0.0, wait))
        answer = self._try(request, is_last=True)
        assert answer is not None
        return _accepted(answer)

    def _try(self, request: httpx.Request, *, is_last: bool) -> httpx.Response | None:
        """The answer, or None where the connection broke before it came."""
        try:
            return self._http.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        except httpx.TransportError as error:
            if is_last:
                raise self._unreachable(error) from error
            return None

    def _json(self, answer: httpx.Response) -> Any:
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise Stop(
                "not_nightshift",
                f"{self.target.url} (from {self.target.source}) does not answer in JSON: is it a Nightshift API?",
            ) from error

    def _unreachable(self, error: Exception) -> Stop:
        what = "answers too slowly" if isinstance(error, httpx.TimeoutException) else "cannot be reached"
        return Stop(
            "api_unreachable",
            f"{self.target.url} {what} (address from {self.target.source}): is the stack up? `./dev up` starts one",
        )


def _wait_of(answer: httpx.Response) -> float | None:
    """Seconds after which to send it again: the same POST in flight, or a service that will be back. Else None."""
    if answer.status_code == 503 or (answer.status_code == 409 and _problem(answer)[0].startswith("idempotency")):
        try:
            wait = float(answer.headers.get("retry-after", "0.5"))
        except ValueError:
            return None
        return wait if wait <= _LONGEST_WAIT else None
    return None


def _accepted(answer: httpx.Response) -> httpx.Response:
    if answer.status_code >= 300:
        raise _refusal(answer)
    return answer


def _problem(answer: httpx.Response) -> tuple[str, str]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return "", ""
    problem = cast("dict[str, Any]", found)
    return str(problem.get("code") or ""), str(problem.get("detail") or problem.get("title") or "")


def _refusal(answer: httpx.Response) -> Stop:
    status = answer.status_code
    code, detail = _problem(answer)
    if 300 <= status < 400:
        return Stop("not_nightshift", f"the address redirects to {answer.headers.get('location', 'elsewhere')}")
    message = detail or _ADVICE.get(status) or f"the API answered {status} without saying why"
    if detail and status in {401, 503} and _ADVICE[status].split(":")[0] not in detail:
        message = f"{detail} ({_ADVICE[status].split(': ')[-1]})"
    if status == 429 and answer.headers.get("retry-after"):
        message += f" (retry after {answer.headers['retry-after']} s)"
    exit_code = of_code(code) if code else Exit.FAILED
    if status in {400, 422} and exit_code is Exit.FAILED:
        exit_code = Exit.WRONG_USE
    return Stop(code or f"http_{status}", message, exit_code, status=status)


def _present(values: Mapping[str, object]) -> dict[str, object]:
    """Without what was not given, so that the API's own defaults hold."""
    return {name: value for name, value in values.items() if value is not None}
