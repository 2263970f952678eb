"""What anchoring the estimate on bills is worth, as the metrics tell it."""

from __future__ import annotations

from api.metrics import _ratio
from api.vitals import CALLS, Figures
from tests.ground import Ground, Rehearsal


def test_the_metrics_tell_how_far_estimate_and_projection_are_from_the_bills(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    words = "the quick brown fox jumps over the lazy dog and goes on its way " * 60
    provider.script([{"text": f"{n} {words}"} for n in range(6)], session=str(session))
    for n in range(6):
        worker.turn(session, f"{n}: {words}")
        worker.look()

    calls = worker.rows(CALLS)
    rows = worker.rows("select estimate, projected, input_tokens + cache_read_tokens + cache_write_5m_tokens as billed"
                       " from calls where session = %s order by seq", session)  # fmt: skip
    figures = Figures(True, [], [], calls, 1, [], [], [], [])
    told = {sample.labels["kind"]: sample.value for sample in _ratio(figures).samples}
    billed = sum(row["billed"] for row in rows)
    assert told == {
        "raw": sum(row["estimate"] for row in rows) / billed,
        "corrected": sum(row["projected"] for row in rows) / billed,
    }
    assert rows[0]["projected"] == rows[0]["estimate"], "nothing was billed before the first"
    assert 1 <= told["corrected"] < told["raw"], "too much on purpose, and less so once a bill was seen"
    assert list(_ratio(Figures(True, [], [], [], 1, [], [], [], [])).samples) == []
