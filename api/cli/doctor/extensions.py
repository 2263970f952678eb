"""Checks of what the settings bring in from outside: secrets, tool servers, hooks. Nothing of it is started here."""

from __future__ import annotations

import os
import shutil
from importlib import metadata

from api.cli.doctor.finding import Facts, Finding, failed, noted, ok
from shared import hooks, mcp
from shared.mcp import McpServer
from shared.secrets import TEAM, SecretMissing, Secrets, SecretUnusable


def secrets(known: Facts) -> list[Finding]:
    """That each file is one that nobody else can read. Names only."""
    found = _secrets(known)
    wrong = [failed("secrets", sentence, "until then nothing uses it") for sentence in found.unusable()]
    return wrong or [ok("secrets", f"{len(found.all())} found")]


def tool_servers(known: Facts) -> list[Finding]:
    """That what each needs to be started is there. Whether it answers, a worker tells in its log."""
    return [_server(known, name, config) for name, config in sorted(known.settings.mcp.items())]


def installed_hooks(known: Facts) -> list[Finding]:
    names = [word.strip() for word in known.settings.hooks.split(",") if word.strip()]
    there = {entry.name for entry in metadata.entry_points(group=hooks.GROUP)} if names else set[str]()
    return [
        ok("hook", name)
        if name in there
        else failed("hook", f"{name} is offered by no installed package", "install it: no worker starts without it")
        for name in names
    ]


def _server(known: Facts, name: str, config: McpServer) -> Finding:
    part = "tool server"
    if config.command and shutil.which(config.command[0]) is None:
        return failed(part, f"{name}: {config.command[0]} is not on the PATH", "install it, or name its whole path")
    for value in (*config.env.values(), *config.headers.values()):
        if value.startswith(mcp.SECRET):
            try:
                _secrets(known).find(value.removeprefix(mcp.SECRET), TEAM)
            except (SecretMissing, SecretUnusable) as error:
                return failed(part, f"{name}: {error.message}", "its tools are not offered until the team has that key")
    return ok(part, f"{name}: {config.url or config.command[0]}")


def _secrets(known: Facts) -> Secrets:
    return Secrets(known.settings.secrets_folder, os.environ)


def content_trace(known: Facts) -> list[Finding]:
    """Said only where it is on, here or for the stack that runs: then what people say is written to files."""
    folder = known.settings.content_trace or (known.stack or {}).get("content_trace")
    if not folder:
        return []
    most = f"at most {known.settings.content_trace_mb} MB"
    return [noted("content trace", f"on: what models are sent and answer, rid of keys, is written to {folder}, {most}")]
