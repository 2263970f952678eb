"""`doctor` on real servers: what is whole is in order, and each thing that is broken is named with its mend."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.cli.doctor import database, machine, pooled, services
from api.cli.doctor import extensions as outside
from api.cli.doctor import keys as key_checks
from api.cli.doctor.finding import Facts, Finding, State
from api.cli.doctor.run import examine, facts
from api.cli.main import main
from shared.mcp import McpServer
from shared.settings import Settings
from shared.store import extensions, principals
from shared.values import PrincipalKind, Role
from tests.cli.pooler import pooling
from tests.cli.surface import Surface


@pytest.fixture
def known(database_url: str, redis_url: str, tmp_path: Path) -> Facts:
    return Facts(
        home=tmp_path,
        settings=Settings(),
        url="",
        token="t",
        database_url=database_url,
        direct_url=database_url,
        redis_url=redis_url,
        provider_url="",
        is_rehearsal=None,
    )


def _by_part(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.part: finding for finding in findings}


def _failures(findings: list[Finding]) -> dict[str, Finding]:
    return {part: finding for part, finding in _by_part(findings).items() if finding.state is State.FAILED}


def test_a_whole_database_is_in_order(known: Facts) -> None:
    found = database.database(known) + pooled.direct(known)
    assert {finding.part: finding.state for finding in found} == dict.fromkeys(
        ("database", "database revision", "database extension", "database role", "database clock", "direct connection"),
        State.OK,
    )


def test_role_settings_that_are_not_in_force_are_named(known: Facts) -> None:
    with psycopg.connect(known.database_url, autocommit=True) as connection:
        name = connection.execute("select current_database()").fetchone()
        assert name is not None
        connection.execute(f"alter database {name[0]} set statement_timeout = 0".encode())
        connection.execute(f"alter role current_user in database {name[0]} reset statement_timeout".encode())
    failures = _failures(database.database(known))
    assert list(failures) == ["database role"]
    assert "statement_timeout is 0 instead of 10s" in failures["database role"].seen
    assert "nightshift migrate" in failures["database role"].mend


def test_an_extension_that_is_missing_is_named_with_its_mend(known: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(known.database_url, autocommit=True) as connection:
        connection.execute("drop extension pg_trgm cascade")
    failures = _failures(database.database(known))
    assert list(failures) == ["database extension"]
    assert failures["database extension"].mend == "run `nightshift migrate`"
    monkeypatch.setattr(extensions, "NAME", "pg_nothing")
    missing = _failures(database.database(known))["database extension"]
    assert missing.seen == "the server does not have the extension pg_nothing"
    assert missing.mend.startswith("install the contrib modules")


def test_a_pooler_in_transaction_mode_is_seen_behind_the_direct_url(known: Facts) -> None:
    with pooling(known.direct_url) as pooler:
        (finding,) = pooled.direct(replace(known, direct_url=pooler.url))
    assert finding.state is State.FAILED
    assert "a pooler stands between" in finding.seen
    assert "NIGHTSHIFT_DATABASE_DIRECT_URL" in finding.mend


def test_a_pooler_with_few_backends_is_seen_too(known: Facts) -> None:
    with pooling(known.direct_url, backends=1) as pooler:
        (finding,) = pooled.direct(replace(known, direct_url=pooler.url))
    assert finding.state is State.FAILED


def test_an_unmigrated_and_a_newer_database_are_told_apart(known: Facts) -> None:
    with psycopg.connect(known.database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
        assert "upgrade Nightshift" in _failures(database.database(known))["database revision"].mend
        connection.execute("drop table alembic_version")
    assert "nightshift migrate" in _failures(database.database(known))["database revision"].mend


@pytest.mark.parametrize(
    ("change", "mend"),
    [("wrong password", "user and password"), ("no server", "that the server runs")],
)
def test_a_database_that_cannot_be_used_is_told_without_its_password(known: Facts, change: str, mend: str) -> None:
    secret = uuid.uuid4().hex
    conninfo: dict[str, Any] = conninfo_to_dict(known.database_url)
    conninfo |= {"password": secret} if change == "wrong password" else {"host": "127.0.0.1", "port": "1"}
    url = make_conninfo(**{name: str(value) for name, value in conninfo.items()})
    (finding,) = database.database(replace(known, database_url=url, direct_url=url))
    assert finding.state is State.FAILED
    assert mend in finding.mend
    assert secret not in finding.seen + finding.mend


def test_a_fleet_is_alive_by_its_leases(known: Facts) -> None:
    assert set(_failures(services.fleet(known))) == {"worker", "scheduler"}
    with psycopg.connect(known.database_url, autocommit=True) as connection:
        connection.execute(
            "insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until) values"
            " (gen_random_uuid(), 'worker', 'h', 1, 8, '', 1, clock_timestamp() + interval '15 s'),"
            " (gen_random_uuid(), 'scheduler', 'h', 2, 0, '', 2, clock_timestamp() - interval '1 s')"
        )
    found = _by_part(services.fleet(known))
    assert found["worker"].seen == "1 alive, 8 slots"
    assert found["scheduler"].state is State.FAILED


def test_broker_api_and_provider_that_are_gone_are_named(known: Facts) -> None:
    nowhere = "http://127.0.0.1:1"
    gone = replace(known, url=nowhere, provider_url=nowhere, redis_url="redis://127.0.0.1:1/0", is_rehearsal=True)
    found = [*services.broker(gone), *services.api(gone), *services.provider(gone)]
    assert list(_failures(found)) == ["broker", "api", "provider"]
    assert all(finding.mend for finding in found)
    assert "rehearsal" in found[-1].seen


def test_a_broker_that_answers_is_in_order(known: Facts) -> None:
    assert [finding.state for finding in services.broker(known)] == [State.OK]


def test_a_token_that_is_not_accepted_is_named(known: Facts, surface: Surface) -> None:
    found = _by_part(services.api(replace(known, url=surface.url, token="revoked")))
    assert found["token"].seen == "is not accepted"


def test_a_home_that_cannot_be_written_is_named(known: Facts) -> None:
    (known.home / "workspaces").write_text("a file where a folder should be")
    found = _failures(machine.disk(known))
    assert list(found) == ["workspace"]
    assert "NIGHTSHIFT_HOME" in found["workspace"].mend


def test_a_check_that_breaks_is_a_failure_and_the_rest_is_still_told(known: Facts) -> None:
    def broken(_: Facts) -> list[Finding]:
        raise LookupError("nobody thought of this")

    found = list(examine(known, (broken, machine.python)))
    assert [(finding.part, finding.state) for finding in found] == [("broken", State.FAILED), ("python", State.OK)]


def test_the_command_exits_with_one_and_prints_every_finding_as_json(
    known: Facts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(known.home))
    monkeypatch.setenv("NIGHTSHIFT_DATABASE_URL", known.database_url)
    assert facts().direct_url == known.database_url
    assert main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    states = {row["part"]: row["state"] for row in told["checks"]}
    assert not told["ok"]
    assert (states["database"], states["direct connection"], states["api"]) == ("ok", "ok", "failed")
    assert all(row["mend"] for row in told["checks"] if row["state"] == "failed")


def test_a_wrong_setting_is_a_finding(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NIGHTSHIFT_SLOTZ", "8")
    assert main(["doctor"]) == 1
    assert "NIGHTSHIFT_SLOTZ is not a setting. Did you mean NIGHTSHIFT_SLOTS?" in capsys.readouterr().out


def test_a_tool_that_is_none_is_named_before_a_worker_stumbles_over_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    monkeypatch.setenv("NIGHTSHIFT_APPROVE_TOOLS", "write_flie")
    assert main(["doctor"]) == 1
    assert "NIGHTSHIFT_APPROVE_TOOLS: there is no tool 'write_flie'" in capsys.readouterr().out


def test_secrets_tool_servers_and_hooks_that_cannot_be_used_are_named_without_a_value(known: Facts) -> None:
    team = known.home / "secrets/team"
    team.mkdir(parents=True)
    for name, mode in (("OPEN", 0o644), ("FINE", 0o600)):
        (team / name).write_text("the-value-of-it")
        (team / name).chmod(mode)
    mcp = {
        "gone": McpServer(command=("no-such-program",)),
        "keyless": McpServer(url="http://127.0.0.1:9/mcp", headers={"Authorization": "secret:MISSING"}),
        "fine": McpServer(command=("sh",), env={"KEY": "secret:FINE"}),
    }
    settings = Settings(home=known.home, mcp=mcp, hooks="not-installed")
    found = list(
        examine(replace(known, settings=settings), (outside.secrets, outside.tool_servers, outside.installed_hooks))
    )
    assert [(finding.part, finding.state, finding.seen[:40]) for finding in found] == [
        ("secrets", State.FAILED, "the secret secrets/team/OPEN can be read"),
        ("tool server", State.OK, "fine: sh"),
        ("tool server", State.FAILED, "gone: no-such-program is not on the PATH"),
        ("tool server", State.FAILED, "keyless: there is no secret MISSING for "),
        ("hook", State.FAILED, "not-installed is offered by no installed"),
    ]
    assert "the-value-of-it" not in str(found)


def test_providers_keys_are_counted_by_scope_and_folders_of_nobody_are_named(known: Facts) -> None:
    assert key_checks.keys(known) == []
    with psycopg.connect(known.database_url, autocommit=True) as connection:
        principals.ensure_principal(connection, "ann", PrincipalKind.PERSON, Role.MEMBER)
    places = ("anthropic/a", "anthropic/b", "people/ann/openai/k", "people/Ann/openai/k", "jobs/x\ny/openai/k")
    for place in places:
        path = known.home / "keys" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the-key-itself")
        path.chmod(0o600)
    (known.home / "keys/people/ann/openai/open").write_text("the-key-itself")
    (known.home / "keys/people/link").symlink_to(known.home / "keys/people/ann")
    found = key_checks.keys(replace(known, settings=Settings(home=known.home)))
    assert found[0].seen == "in files: 2 of the team, 2 of 2 people, 1 of 1 jobs"
    assert sorted(finding.seen for finding in found if finding.state is State.FAILED) == [
        "keys/jobs/'x\\ny' is the name of no job",
        "keys/people/'Ann' is the name of no person",
        "keys/people/'link' is no folder of its own",
        "the secret ann/openai/open can be read by others: chmod 600 it",
    ]
    assert not any("the-key-itself" in f"{finding}" for finding in found)
