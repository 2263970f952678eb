"""A worker that lives and hears nothing: its turns are safe, and it is started again to hear of new ones.

The Valkey of the other tests is used, in a database of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from deploy.local.servers import Servers
from tests.chaos.rig import Rig, stack
from tests.chaos.silence import Silence, silencing

NOTICED_S = 10.0  # rings that lie unheard at four looks, two seconds apart
READ_AGAIN_S = 6.0  # what Celery itself may need to miss its answer, ask anew and be left without one again


@pytest.fixture
def silence(servers: Servers) -> Generator[Silence]:
    with (
        tempfile.TemporaryDirectory(prefix="ns-") as folder,
        silencing(servers.valkey.url.replace("db=0", "db=7"), Path(folder)) as made,
    ):
        yield made


@pytest.fixture
def rig(silence: Silence) -> Generator[Rig]:
    with stack(settings={"redis_url": silence.url}) as made:
        yield made


def test_a_worker_that_hears_no_ring_is_started_again_and_nothing_is_lost(rig: Rig, silence: Silence) -> None:
    (worker,) = rig.workers_ready(1)
    session = rig.session()
    rig.script(session, [{"text": "heard before"}, {"text": "heard after"}])
    assert rig.ended(rig.send(session, "do you hear me?"))["answer"] == "heard before"

    silence.deaf.add(worker["pid"])
    turn = rig.ended(rig.send(session, "and now?"), NOTICED_S + READ_AGAIN_S + 30)

    assert (turn["status"], turn["answer"], turn["attempts"]) == ("done", "heard after", 0)
    (told,) = rig.logged("worker.deaf")
    assert "interactive" in told["queues"]
    assert not Path(f"/proc/{worker['pid']}").exists()
    (other,) = rig.workers_ready(1)
    assert other["pid"] not in silence.deaf
    row = rig.one("select stopped_at from workers where boot_id = %s", worker["boot_id"])
    assert row["stopped_at"] is not None, "it ended in order"
