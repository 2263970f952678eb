"""Whether a transcript is whole: each input once, roles that alternate, each call answered once."""

from __future__ import annotations

import orjson

from deploy.drill.rig import Rig, Row


def doubled(rig: Rig, session: str) -> int:
    """How many inputs, answers or results stand twice or not at all in a transcript. Its order is checked too."""
    wrong = 0
    open_calls: list[str] = []
    last_role = ""
    inputs: dict[str, int] = {}
    for row in rig.rows("select * from messages where session = %s order by id", session):
        content: list[Row] = orjson.loads(row["content"])
        if row["role"] == "assistant":
            wrong += len(open_calls) + (last_role == "assistant")
            open_calls = [block["id"] for block in content if block["type"] == "tool_use"]
        else:
            results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
            for result in results:
                if result in open_calls:
                    open_calls.remove(result)
                else:
                    wrong += 1
            if not results and row["step"] == 0:
                inputs[str(row["turn"])] = inputs.get(str(row["turn"]), 0) + 1
        last_role = row["role"]
    wrong += len(open_calls)
    done = rig.rows("select id from turns where session = %s and status = 'done'", session)
    wrong += sum(inputs.get(str(row["id"]), 0) != 1 for row in done)
    return wrong
