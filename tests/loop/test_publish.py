"""Events of one turn stand in the order in which they were put, whichever thread sends them."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

from shared import stream
from shared.values import EventKind
from workers.publish import Publisher


class Slow:
    """A connection whose first batch is held on its way."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.on_its_way, self.go = threading.Event(), threading.Event()

    def register_script(self, text: str) -> Any:
        return self._client.register_script(text)

    def pipeline(self, **how: Any) -> Any:
        if not self.on_its_way.is_set():
            self.on_its_way.set()
            assert self.go.wait(10)
        return self._client.pipeline(**how)


def test_a_flush_waits_for_the_one_that_is_on_its_way(redis_url: str) -> None:
    client = stream.connect(redis_url)
    slow = Slow(client)
    publisher = Publisher(slow, lambda: True)  # pyright: ignore[reportArgumentType] - a real one, slower
    turn = uuid4()
    publisher.put(turn, 1, 1, EventKind.STEP_STARTED, {})
    assert slow.on_its_way.wait(10)
    publisher.put(turn, 1, 1, EventKind.TURN_FINISHED, {})
    last = threading.Thread(target=publisher.flush)
    last.start()
    last.join(0.3)
    slow.go.set()
    last.join(10)
    raw: Any = client
    events = [stream.decode(fields) for _, fields in raw.xrange(stream.key(turn))]
    publisher.close()
    assert [event.kind for event in events if event is not None] == [EventKind.STEP_STARTED, EventKind.TURN_FINISHED]
