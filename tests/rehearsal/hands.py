"""Owns a tiny tool executor over a folder and a loop around it with the real SDK: no code of the project."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.rehearsal.served import Served

Json = dict[str, Any]


def schema(name: str, required: list[str], optional: list[str]) -> Json:
    kinds = {"limit": "integer", "offset": "integer"}
    return {
        "name": name,
        "description": name,
        "input_schema": {
            "type": "object",
            "properties": {key: {"type": kinds.get(key, "string")} for key in (*required, *optional)},
            "required": required,
        },
    }


SCHEMAS = {
    "list_files": schema("list_files", ["path"], []),
    "read_file": schema("read_file", ["path"], ["offset", "limit"]),
    "search_files": schema("search_files", ["pattern"], ["path"]),
    "git_log": schema("git_log", [], ["path", "limit"]),
    "read_artifact": schema("read_artifact", ["handle"], ["offset"]),
}


@dataclass(slots=True)
class Run:
    answer: str
    steps: int
    messages: list[Json]
    calls: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])


def list_files(root: Path, path: str) -> str:
    lines: list[str] = []
    for entry in sorted((root / path).iterdir()):
        shown = entry.relative_to(root).as_posix()
        changed = datetime.fromtimestamp(entry.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M")
        lines.append(f"{shown}/\t-\t{changed}" if entry.is_dir() else f"{shown}\t{entry.stat().st_size}\t{changed}")
    return "\n".join(lines) or "[empty folder]"


def read_file(root: Path, path: str, offset: int = 1, limit: int = 500) -> str:
    lines = (root / path).read_text("utf-8", "replace").splitlines()
    cut = lines[offset - 1 : offset - 1 + limit]
    told = [f"[lines {offset}-{offset + len(cut) - 1} of {len(lines)} shown]"] if len(cut) < len(lines) else []
    return "\n".join(cut + told)


def search_files(root: Path, pattern: str, path: str = ".") -> str:
    del root, pattern, path
    return "[no match]"


def read_artifact(root: Path, handle: str, offset: int = 0) -> str:
    """What was left out of a request is in a file beside it, named by its handle."""
    return (root / handle.replace(":", "-")).read_text("utf-8")[offset:]


def git_log(root: Path, path: str = ".", limit: int = 50) -> str:
    command = ["git", "-C", str(root), "log", f"-{limit}", "--date=short", "--format=%h %ad %an | %s", "--", path]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


TOOLS: dict[str, Callable[..., str]] = {
    "list_files": list_files,
    "read_file": read_file,
    "search_files": search_files,
    "git_log": git_log,
    "read_artifact": read_artifact,
}


def run(provider: Served, root: Path, asked: str, offered: list[str], messages: list[Json] | None = None) -> Run:
    """One turn: ask, run what is asked for, send back all that came, until a text ends it."""
    talk = [*(messages or []), {"role": "user", "content": [{"type": "text", "text": asked}]}]
    done = Run("", 0, talk)
    while done.steps < 30:
        asked_for: Json = {
            "model": "claude-sonnet-5-5",
            "max_tokens": 20_000,
            "messages": talk,
            "tools": [SCHEMAS[name] for name in offered],
            "metadata": {"user_id": "hands"},
        }
        reply = provider.create(asked_for)
        content: list[Json] = [block.model_dump(exclude_none=True) for block in reply.content]
        talk.append({"role": "assistant", "content": content})
        if reply.stop_reason != "tool_use":
            done.answer = "".join(block["text"] for block in content if block["type"] == "text")
            return done
        done.steps += 1
        results = [_act(done, root, block) for block in content if block["type"] == "tool_use"]
        talk.append({"role": "user", "content": results})
    raise AssertionError("the policy does not come to an end")


def _act(done: Run, root: Path, call: Json) -> Json:
    done.calls.append((call["name"], call["input"]))
    try:
        text, failed = TOOLS[call["name"]](root, **call["input"]), False
    except (OSError, TypeError, subprocess.SubprocessError) as error:
        text, failed = f"{type(error).__name__}: {error}", True
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": [{"type": "text", "text": text or "[nothing]"}],
        "is_error": failed,
    }
