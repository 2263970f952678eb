"""The one settings object: frozen, built at the entry point from `nightshift.toml` and NIGHTSHIFT_* variables.

A wrong value, an unknown key or an unknown NIGHTSHIFT_* variable stops the start with its name.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shared import demands
from shared.errors import SettingsError
from shared.mcp import McpServer, servers
from shared.prices import OwnPrice, Prices, table
from shared.providers import resolve
from shared.providers.configured import ProviderSettings, configured
from shared.secrets import VARIABLE

PREFIX = "NIGHTSHIFT_"
_OUTSIDE = frozenset({"NIGHTSHIFT_GATE_BYPASS", "NIGHTSHIFT_CONFIG", "NIGHTSHIFT_VENV", "NIGHTSHIFT_PYTHON"})
"""Read by ./dev, by `load` itself, or once by shared/gate/bypass.py: not settings."""


class Settings(BaseModel):
    """Every setting. Seconds end in `_s`, dollars in `_usd`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Path(".nightshift")
    database_url: str = ""
    database_direct_url: str = ""
    redis_url: str = ""
    url: str = ""
    token: str = ""
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=0, ge=0, le=65535)
    team_zone: str = "UTC"

    provider: str = ""
    """Which provider answers, by its name (`shared.providers.table`); told by the address where it is not set."""
    provider_kind: Literal["anthropic", "chat_completions", "responses", "bedrock_converse"] | None = None
    """The wire, where it is another than the provider's own."""
    provider_streams: bool = True
    context_window: int | None = Field(default=None, ge=1_024)
    """Of the model, in tokens, where the catalogue does not know better than whoever runs it."""
    provider_base_url: str = ""
    provider_key: str = ""
    providers: Annotated[dict[str, ProviderSettings], BeforeValidator(configured)] = Field(
        default_factory=dict[str, ProviderSettings]
    )
    """Providers beside that one, and what holds for the keys of any: tables `[providers.NAME]`."""
    fallbacks: str = ""
    """Who answers while the session's own model does not, by profile: `profile=provider:model>provider:model`, with
    commas between, `*` for the rest. The next turn asks the session's own model again."""
    auxiliary: str = "session"
    """Who writes summaries and titles: `session>provider:model`, in this order; `session` is whoever the session speaks
    to."""
    titles: bool | None = None
    """Whether a model is asked for a title once a session's first turn is over. Unset: where `auxiliary` names one."""
    keys: Path | None = None
    """Folder of providers' keys (shared/providers/credentials.py); `keys` of the home where it is not set."""
    team_keys_stand_in: bool = True
    """Whether the team's keys do where those that a person or a job has of their own are used up or out."""
    outage_s: float = Field(default=3600.0, gt=0)
    """A turn whose every model has been out for so long ends."""
    rehearsal: bool = False
    rehearsal_token: str = ""
    """Of the rehearsal provider's control surface. A stack makes one where none is given."""
    model: str = "claude-sonnet-5-5"
    max_output_tokens: int = Field(default=8192, ge=1)
    call_cap_usd: Decimal | None = None
    turn_cap_usd: Decimal | None = None
    prices: Annotated[Prices, BeforeValidator(table)] = Field(default_factory=dict[str, dict[str, OwnPrice]])
    """Before any list's: tables `[prices.PROVIDER."MODEL"]` (shared/prices.py)."""

    slots: int = Field(default=8, ge=1, le=1024)
    classes: str = "interactive,child,job,chore"
    principal_limit: int = Field(default=64, ge=1)
    """How many turns of one principal run at once; the next four the same of a job, of a profile, on one provider's
    credential, and of the children of one parent. Unset is no limit."""
    job_limit: int | None = Field(default=None, ge=1)
    profile_limit: int | None = Field(default=None, ge=1)
    provider_limit: int | None = Field(default=None, ge=1)
    parent_limit: int | None = Field(default=None, ge=1)
    max_steps: int = Field(default=90, ge=1, le=1000)
    repeat_failures: int = Field(default=3, ge=0)
    """How often the same call may fail the same way in a turn before its tool use ends and the model is asked to
    account for it; and how many calls in a row may bring nothing new. 0 is no end."""
    repeat_stale: int = Field(default=12, ge=0)
    approve_tools: str = ""
    """Tools that a person must allow, each `tool`, `tool:role` or `tool:role:four_eyes`, with commas between."""
    gate_modes: str = ""
    """What comes of a call that needs a person: `profile=ask`, `=park` or `=deny`, with commas between, `*` for the
    rest. Unset is ask; of a job ask is park."""
    gate_deny: str = ""
    """Commands that are refused whoever asks, by their first words, with commas between; `*` is any one word."""
    gate_allow: str = ""
    """Likewise, commands that no pattern asks about."""
    approval_limit_s: float = Field(default=86400, gt=0)
    clarify_limit_s: float = Field(default=86400, gt=0)
    children_limit_s: float = Field(default=86400, gt=0)
    money_limit_s: float = Field(default=86400, gt=0)
    child_deadline_s: int = Field(default=3600, ge=1)
    child_max_steps: int = Field(default=50, ge=1, le=1000)
    spawn_depth: int = Field(default=1, ge=0, le=5)
    queued_per_session: int = Field(default=100, ge=1)
    interactive_deadline_s: int = Field(default=7200, ge=1)
    job_deadline_s: int = Field(default=14400, ge=1)
    attempts: int = Field(default=3, ge=1)

    memory_team_chars: int = Field(default=4000, ge=0, le=50_000)
    """How many characters the team's memory may hold, a person's own, and their profile."""
    memory_person_chars: int = Field(default=3000, ge=0, le=50_000)
    profile_chars: int = Field(default=1500, ge=0, le=50_000)
    memory_from_jobs: bool = False
    """Whether a job's run may write memory: what it reads was written by strangers, and nobody watches."""
    skills: Path | None = None
    """Folder of skills, each a folder with a SKILL.md; `skills` of the home where it is not set."""
    web_hosts: str = ""
    """Hosts that pages may be fetched from, with commas between, `*.name` for all below it; any public one if empty."""
    web_open_hosts: str = ""
    """Each `host:port`, with commas between: fetched from though their address is none of the public internet."""
    web_search: Literal["", "searxng", "brave"] = ""
    """Which provider of search `web_search` asks; without one there is no such tool. Its key, where it wants one, is
    the secret WEB_SEARCH_KEY."""
    web_search_url: str = ""
    """Base address of that provider, where it is not its public one."""
    mcp: Annotated[dict[str, McpServer], BeforeValidator(servers)] = Field(default_factory=dict[str, McpServer])
    """Tool servers by name: tables `[mcp.NAME]`."""
    mcp_wait_s: float = Field(default=10.0, ge=0, le=120)
    """How long a worker that starts waits for them. One that comes later is there at the next epoch."""
    hooks: str = ""
    """Hooks of installed packages (shared/hooks.py) that stand around each tool call, with commas between."""
    secrets: Path | None = None
    """Folder of secrets (shared/secrets.py); `secrets` of the home where it is not set."""

    sandbox_tier: Literal["isolated", "confined"] = "confined"
    """The weakest wall behind which a model's commands and code may run; where a machine has less, those tools are not
    offered. What each is: shared/sandbox/tiers.py."""
    sandbox_disk_mb: int = Field(default=16_384, ge=64, le=16_777_216)
    """What a workspace may come to hold while a command or code runs in it; one that goes beyond is ended."""
    sandbox_hosts: str = ""
    """Hosts that commands and code may reach, by a proxy, with commas between, `*.name` for all below it, and
    `profile=host` for sessions of that profile alone; none if empty. With any, what they run is asked about as if it
    ran on this host."""

    stub_at_birth: bool = True
    """What may be done about a conversation that grows; each is decided by arithmetic (economics.md) and may be turned
    off: a result that stands whole already as a line; stubs where the cache is cold, or where carrying them has cost as
    much as the edit; a summary where that has, at the threshold, or when the provider says that the prompt is too long.
    """
    prune_cold: bool = True
    prune_warm: bool = True
    compact_by_meter: bool = True
    compact_at_threshold: bool = True
    compact_on_overflow: bool = True
    micro_compaction: bool = False
    """After a turn the oldest exchange outside the tail is folded into the summary before it: the conversation stays
    flat, the cache is lost each time, and the turn ends when the summary does."""
    idle_compaction_s: float | None = Field(default=None, gt=0)
    """A conversation of at least so many tokens that nobody has spoken in for so long is summarised. Unset is never."""
    idle_compaction_tokens: int = Field(default=40_000, ge=20_000)
    context_threshold: float | None = Field(default=None, gt=0, le=1)
    """Of the window without the answer. Unset is 0.75 until the provider has told a size, 0.9 from then on."""
    tail_messages: int = Field(default=20, ge=1)
    """What stays as it is at the end: so many messages, or so many tokens of them, whichever keeps less."""
    tail_tokens: int = Field(default=40_000, ge=1)

    lease_s: float = Field(default=15.0, gt=0)
    heartbeat_s: float = Field(default=5.0, gt=0)
    drain_s: float = Field(default=60.0, gt=0)
    backoff_park_s: float = Field(default=5.0, ge=0)
    first_byte_timeout_s: float = Field(default=90.0, gt=0, le=90)
    read_timeout_s: float = Field(default=60.0, gt=0, le=90)

    test_clock: bool = False
    strict: bool = False
    """A broken prefix is an error, not only an event: the tests run so."""
    metrics_listen: str = ""
    """`host:port` at which a worker serves its own figures for Prometheus; nowhere if empty."""
    otlp_endpoint: str = ""
    """Base address of a collector that gets the same figures over OTLP/HTTP; none if empty."""
    content_trace: Path | None = None
    """Folder into which requests and answers are written, rid of keys, for whoever looks into a fault: what people said
    is in it. Nowhere if unset, which is the rule."""
    content_trace_mb: int = Field(default=256, ge=1, le=1_048_576)
    """What that folder may come to hold; the oldest files go first."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    pause_at: str = ""
    """Test only: 'point:directory' blocks a worker at a named point until the file directory/go exists."""

    @property
    def skills_folder(self) -> Path:
        return self.home / "skills" if self.skills is None else self.skills

    @property
    def secrets_folder(self) -> Path:
        return self.home / "secrets" if self.secrets is None else self.secrets

    @property
    def keys_folder(self) -> Path:
        return self.home / "keys" if self.keys is None else self.keys

    @property
    def direct_url(self) -> str:
        """Where session state (advisory locks, LISTEN) is safe: the direct URL, else the only one."""
        return self.database_direct_url or self.database_url


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises SettingsError naming the variable or key that is wrong."""
    env = os.environ if environ is None else environ
    values = _from_file(env)
    known = set(Settings.model_fields)
    for name, value in env.items():
        if not name.startswith(PREFIX) or name in _OUTSIDE or name.startswith(VARIABLE):
            continue
        key = name.removeprefix(PREFIX).lower()
        if key not in known:
            raise SettingsError(f"{name} is not a setting.{_nearest(key, known, PREFIX)}", code="setting_unknown")
        values[key] = value
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else "settings"
        raise SettingsError(f"{PREFIX}{key.upper()}: {first['msg']} (got {_shown(key, values.get(key))})") from error
    _check_zone(settings.team_zone)
    demands.parse(settings.approve_tools)
    resolve.check(settings)
    return resolve.with_key(settings, env)


def _from_file(env: Mapping[str, str]) -> dict[str, Any]:
    home = Path(env.get("NIGHTSHIFT_HOME", ".nightshift"))
    named = env.get("NIGHTSHIFT_CONFIG")
    path = Path(named) if named else home / "nightshift.toml"
    if not path.is_file():
        if named:
            raise SettingsError(f"NIGHTSHIFT_CONFIG names {path}, which is not a file")
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    known = set(Settings.model_fields)
    for key in values:
        if key not in known:
            raise SettingsError(f"{path}: '{key}' is not a setting.{_nearest(key, known, '')}", code="setting_unknown")
    return values


def _nearest(key: str, known: set[str], prefix: str) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f" Did you mean {prefix}{close[0].upper() if prefix else close[0]}?" if close else ""


def _shown(key: str, value: object) -> str:
    secret = any(word in key for word in ("key", "token", "url", "mcp", "providers"))
    return "a value that is not shown" if secret else repr(value)


def _check_zone(name: str) -> None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - tz data is read only where a zone is named

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise SettingsError(f"NIGHTSHIFT_TEAM_ZONE: '{name}' is not an IANA time zone such as Europe/Berlin") from error
