"""Checks the folder of providers' keys: how many each scope has, and whether each folder in it is somebody's. Names and
numbers only."""

from __future__ import annotations

from collections import Counter

import psycopg

from api.cli.doctor.database import PATIENCE_S
from api.cli.doctor.finding import Facts, Finding, failed, noted, ok
from shared.providers import scopes
from shared.providers.scopes import Kind, Owner

_NAMES: dict[Kind, bytes] = {
    "people": b"select name from principals where kind = 'person' and name = any(%s)",
    "jobs": b"select name from jobs where removed_at is null and name = any(%s)",
}
_WHAT: dict[Kind, str] = {"people": "person", "jobs": "job"}


def keys(known: Facts) -> list[Finding]:
    """Nothing is said where there is no such folder: keys of the environment are none of its business."""
    folder = known.settings.keys_folder
    wrong = [failed("keys", sentence, "until then nothing uses it") for sentence in scopes.unusable(folder)]
    owners = [owner for owner, _ in scopes.owners(folder)]
    found = scopes.every(folder)
    if not wrong and not owners and not found:
        return []
    counts = Counter("the team" if owner is None else _WHAT[owner.kind] for owner, _ in found)
    told = [f"{counts['the team']} of the team"]
    for kind, what in _WHAT.items():
        many = len({owner for owner, _ in found if owner is not None and owner.kind == kind})
        told.append(f"{counts[what]} of {many} {kind}")
    return [ok("keys", "in files: " + ", ".join(told)), *wrong, *_strangers(known, owners)]


def _strangers(known: Facts, owners: list[Owner]) -> list[Finding]:
    if not owners:
        return []
    if not known.database_url:
        return [noted("keys", "whether each folder is somebody's is not known here: set NIGHTSHIFT_DATABASE_URL")]
    try:
        with psycopg.connect(known.database_url, autocommit=True, connect_timeout=PATIENCE_S) as connection:
            there = {
                Owner(kind, row[0])
                for kind, query in _NAMES.items()
                for row in connection.execute(query, ([one.name for one in owners if one.kind == kind],)).fetchall()
            }
    except (psycopg.Error, ValueError):
        return []  # the check of the database says so
    return [
        failed(
            "keys", f"keys/{one.kind}/{scopes.shown(one.name)} is the name of no {_WHAT[one.kind]}",
            "nothing uses it: name it as `nightshift people` or `nightshift jobs` has it, letter for letter",
        )
        for one in owners if one not in there
    ]  # fmt: skip
