"""How a tool server is configured: `[mcp.NAME]` in nightshift.toml, or NIGHTSHIFT_MCP as the same in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
"""Of a server. Without an underscore: a tool is called `mcp_<server>_<tool>`, which must not be read in two ways."""
SECRET = "secret:"  # noqa: S105 - what a value begins with that names a secret and is none
PREFIX = "mcp_"


class McpServer(BaseModel):
    """One server: a program that is started (`command`), or an address (`url`).

    `env` and `headers` hold values, or `secret:NAME` for what the secrets of the turn's authority call NAME; a program
    gets nothing else of this host's environment but a short list. `tools` are those to offer, all if it is not given;
    `repeatable` those that the operator vouches for: what a server says of itself is not believed. `allowed` are those
    that no person is asked about, `*` all, in the profiles of `allowed_in`, in all if it is not given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    folder: Path = Path("/")
    tools: tuple[str, ...] | None = None
    repeatable: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    allowed_in: tuple[str, ...] | None = None
    connect_s: float = Field(default=20.0, gt=0, le=120)
    call_s: float = Field(default=60.0, gt=0, le=3600)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) is bool(self.url):
            raise ValueError("a tool server has a command or a url, and not both")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("the url of a tool server begins with http:// or https://")
        if (self.env and self.url) or (self.headers and self.command):
            raise ValueError("env goes with a command, headers go with a url")
        return self


def allows(servers: Mapping[str, McpServer], name: str, profile: str) -> bool:
    """Whether the operator lets a session of this profile call the tool without a person. `name` is the model's."""
    server, _, tool = name.removeprefix(PREFIX).partition("_")
    config = servers.get(server)
    if config is None or (config.allowed_in is not None and profile not in config.allowed_in):
        return False
    return "*" in config.allowed or tool in config.allowed


def servers(value: Any) -> Any:
    """What stands in the file or the variable, as a mapping. Raises ValueError."""
    if isinstance(value, str):
        value = json.loads(value) if value.strip() else {}
    if isinstance(value, dict):
        for name in value:  # pyright: ignore[reportUnknownVariableType] - whatever the file holds; pydantic judges it next
            if not isinstance(name, str) or NAME.fullmatch(name) is None:
                raise ValueError("a tool server's name is small letters, digits and hyphens, at most 20")
    return value  # pyright: ignore[reportUnknownVariableType] - as above


def tool_name(server: str, tool: str) -> str:
    """The name by which the model calls it."""
    return f"{PREFIX}{server}_{tool}"
