"""What a step's request costs with history behind it. Run: python -m tests.request.bench"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from shared.request import blocks, cache_plan, digest, estimate
from shared.request.cache_plan import PlanState
from shared.request.projection import MessageRow, extend, project
from tests.request.made import PREFIX, calls, result, row, user

PARAMS = '"model":"claude-opus-5-5","max_tokens":8000,"stream":true'


def history(messages: int, size: int = 1_050) -> list[MessageRow]:
    filler = "The quarterly figures were checked twice before the report went out. " * (size // 69 + 1)
    rows = [user(1, filler[:size])]
    for number in range(2, messages, 2):
        rows.append(row(number, "assistant", blocks.text(filler[:size]), blocks.tool_use(f"c{number}", "todo", "{}")))
        rows.append(result(number + 1, f"c{number}", filler[:size]))
    return rows


def timed(work: Callable[[], object], rounds: int = 60) -> float:
    spent: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        spent.append((time.perf_counter() - started) * 1_000)
    return median(spent)


def main() -> None:
    for count in (10, 100, 1_000):
        rows = history(count)
        known = project(PREFIX, rows)
        end = cache_plan.place(known, PlanState()).end_message_id
        state = PlanState(last_breakpoint_message_id=end)
        last = rows[-1].id
        new = [calls(last + 1, "n1", "n2"), result(last + 2, "n1", "x " * 1_000), result(last + 3, "n2", "y " * 1_000)]

        def step() -> tuple[bytes, str, int]:
            request = extend(known, new)  # noqa: B023  called before the loop goes on
            marked = cache_plan.place(request, state)  # noqa: B023  as above
            return marked.body(PARAMS), marked.digest, estimate.estimate(request, "claude-opus-5-5")

        size = len(step()[0])
        cold = timed(lambda: project(PREFIX, rows), 10)  # noqa: B023  as above
        proof = timed(lambda: digest.at(known, known.chain.count), 10)  # noqa: B023  as above
        print(
            f"{count:5} messages {size:9,} bytes  warm {timed(step):.3f} ms  cold {cold:.2f} ms  proof {proof:.2f} ms"
        )


if __name__ == "__main__":
    main()
