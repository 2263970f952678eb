"""Judges captured request bodies: does each main call extend the one before, and does it read what that one wrote?

Run as `python prefix_script.py CAPTURE... --ledger FILE [--minimum TOKENS]`. It imports nothing of the project, so that
it cannot agree by construction. Exit code 0: no fault, 1: faults (they are printed), 2: wrong use.

A request is laid out block by block, tools, system, messages, without `cache_control`, which is looked for only where
the provider does: on a tool, on a system block, on a block of a message. Numbers keep their text and objects the order
of their keys, since both are part of a prefix. A request without tools is a `final` one: nobody extends it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

Pairs = list[tuple[str, Any]]
MARK = "cache_control"


def load(raw: bytes) -> dict[str, Any]:
    """The top level as a dict; below it objects are lists of pairs, and numbers the text that they came as."""
    pairs = json.loads(raw, object_pairs_hook=_pairs, parse_float=_number, parse_int=_number, parse_constant=_number)
    return dict(pairs["object"])


def _pairs(pairs: Pairs) -> dict[str, Any]:
    return {"object": pairs}


def _number(text: str) -> dict[str, Any]:
    return {"number": text}


def layout(request: dict[str, Any]) -> list[tuple[str, str]]:
    """(where, digest) of each block of the unmarked request, in the order in which a provider reads it."""
    found = [(f"tools.{at}", _digest("tool", tool)) for at, tool in enumerate(request.get("tools", []))]
    system = request.get("system", [])
    if isinstance(system, str):
        found.append(("system", _digest("system text", system)))
    else:
        found += [(f"system.{at}", _digest("system", block)) for at, block in enumerate(system)]
    for at, message in enumerate(request["messages"]):
        fields = dict(message["object"])
        content = fields["content"]
        if isinstance(content, str):
            found.append((f"messages.{at}", _digest(f"{fields['role']} text", content)))
        else:
            found += [
                (f"messages.{at}.content.{inner}", _digest(fields["role"], block))
                for inner, block in enumerate(content)
            ]
    return found


def _digest(kind: str, block: Any) -> str:
    unmarked = block if isinstance(block, str) else [pair for pair in block["object"] if pair[0] != MARK]
    text = json.dumps([kind, unmarked], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def roles(request: dict[str, Any]) -> list[str]:
    return [dict(message["object"])["role"] for message in request["messages"]]


def marks(request: dict[str, Any]) -> int:
    """How many blocks carry a mark."""
    carriers = [*request.get("tools", [])]
    carriers += [block for block in request.get("system", []) if isinstance(block, dict)]
    for message in request["messages"]:
        content = dict(message["object"])["content"]
        carriers += content if isinstance(content, list) else []
    return sum(any(name == MARK for name, _ in carrier["object"]) for carrier in carriers)


def judge(bodies: list[tuple[int, str, bytes]], calls: dict[int, dict[str, Any]], minimum: int) -> dict[str, Any]:
    """Faults and counts over (index, session, body), in the order in which they came; `calls`: the ledger by index."""
    faults: list[str] = []
    last: dict[str, tuple[int, dict[str, Any], list[tuple[str, str]]]] = {}
    wrote: dict[str, tuple[int, int]] = {}
    counts = {"calls": 0, "main": 0, "final": 0, "broken": 0, "unread": 0, "above_minimum": 0, "sessions": 0}
    for index, session, raw in bodies:
        request = load(raw)
        counts["calls"] += 1
        faults += [f"call {index}: {fault}" for fault in _shape(request)]
        if "tools" not in request:
            counts["final"] += 1
            continue
        counts["main"] += 1
        blocks = layout(request)
        if session in last:
            fault = _extends(request, blocks, *last[session])
            counts["broken"] += fault is not None
            faults += [f"call {index}: {fault}"] if fault else []
        last[session] = (index, request, blocks)
        call = calls.get(index)
        if call is None or call["usd"] is None:
            continue
        prompt = call["input"] + call["cache_read"] + call["cache_write_5m"] + call["cache_write_1h"]
        if session in wrote and prompt >= minimum:
            counts["above_minimum"] += 1
            before, owed = wrote[session]
            if call["cache_read"] < owed:
                counts["unread"] += 1
                faults.append(f"call {index}: read {call['cache_read']} of the {owed} tokens that call {before} left")
        wrote[session] = (index, call["cache_read"] + call["cache_write_5m"] + call["cache_write_1h"])
    counts["sessions"] = len(last)
    return {**counts, "faults": faults}


def _shape(request: dict[str, Any]) -> list[str]:
    found: list[str] = []
    order = roles(request)
    if any(role != ("user", "assistant")[at % 2] for at, role in enumerate(order)):
        found.append(f"roles do not alternate: {order}")
    if marks(request) > 4:
        found.append(f"{marks(request)} marks")
    if MARK in request:
        found.append("an automatic mark")
    return found


def _extends(
    request: dict[str, Any],
    blocks: list[tuple[str, str]],
    before: int,
    earlier: dict[str, Any],
    known: list[tuple[str, str]],
) -> str | None:
    for name in ("model", "thinking", "tool_choice"):
        if json.dumps(request.get(name)) != json.dumps(earlier.get(name)):
            return f"{name} is another than in call {before}"
    for (place, digest), (where, expected) in zip(blocks, known, strict=False):
        if (place, digest) != (where, expected):
            return f"{place} is not {where} of call {before}"
    return None if len(blocks) >= len(known) else f"ends before {known[len(blocks)][0]} of call {before}"


def captured(folders: list[Path]) -> list[tuple[int, str, bytes]]:
    """(index, session, body) of all files `NNNNNN-SESSION.json`, in order."""
    found: list[tuple[int, str, bytes]] = []
    for folder in folders:
        for path in sorted(folder.glob("[0-9]*.json")):
            if not path.name.endswith(".headers.json"):
                index, _, session = path.stem.partition("-")
                found.append((int(index), session, path.read_bytes()))
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Judge the prompt cache by captured bodies.")
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--ledger", type=Path, required=True, help="the answer of GET /rehearsal/ledger")
    parser.add_argument("--minimum", type=int, default=512, help="tokens below which the model caches nothing")
    parser.add_argument("--session", help="judge this one alone")
    asked = parser.parse_args(argv)
    bodies = [one for one in captured(asked.captures) if asked.session in (None, one[1])]
    rows = json.loads(asked.ledger.read_text("utf-8"))["calls"]
    verdict = judge(bodies, {row["index"]: row for row in rows}, asked.minimum)
    print(json.dumps(verdict, indent=1))
    return 1 if verdict["faults"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
