"""Which tools a person must allow: what the setting may say."""

from __future__ import annotations

import pytest

from shared import demands
from shared.demands import Demand
from shared.errors import SettingsError
from shared.values import Role
from workers.tools import registry
from workers.waiting import rules


def test_the_setting_names_tools_roles_and_four_eyes() -> None:
    assert rules.demands(" write_file, todo:admin ,git_log:member:four_eyes,") == {
        "write_file": Demand(Role.APPROVER, four_eyes=False),
        "todo": Demand(Role.ADMIN, four_eyes=False),
        "git_log": Demand(Role.MEMBER, four_eyes=True),
    }
    assert rules.demands("") == {}
    assert rules.demands("todo::four_eyes") == {"todo": Demand(Role.APPROVER, four_eyes=True)}


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("rm_rf", "rm_rf"),
        ("todo:boss", "boss"),
        ("todo:admin:six_eyes", "six_eyes"),
        ("todo:admin:four_eyes:again", "four_eyes:again"),
        ("todo,todo:admin", "twice"),
        (":admin", "''"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_wrong(setting: str, named: str) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_APPROVE_TOOLS") as refused:
        rules.demands(setting)
    assert named in refused.value.message


def test_those_that_may_not_import_the_tools_know_their_names() -> None:
    assert set(registry.TOOLS) == demands.TOOLS
