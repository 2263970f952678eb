"""The table of mutants fits the tree: one whose text has moved would be found out only by the long run."""

from __future__ import annotations

import re

from tests.ground import ROOT
from tests.mutants.table import MUTANTS


def test_what_each_mutant_cuts_stands_in_its_file() -> None:
    found = {mutant.name: (ROOT / mutant.file).read_text("utf-8").count(mutant.old) for mutant in MUTANTS}
    assert found == {mutant.name: mutant.times for mutant in MUTANTS}


def test_the_test_that_must_notice_is_there() -> None:
    for mutant in MUTANTS:
        file, _, name = mutant.red.partition("::")
        text = (ROOT / file).read_text("utf-8")
        function = re.sub(r"\[.*\]$", "", name.rpartition("::")[2])
        assert not name or f"def {function}(" in text, mutant.red
