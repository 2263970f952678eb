"""`model`: the price of a switch is read before it happens, and nobody is switched unasked."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from api.cli.main import main
from tests.cli.surface import Row, Surface
from tests.cli.typist import Typist


def _price(**more: object) -> Row:
    stays = {"provider": "anthropic", "model": "m-1", "anew": False, "cost_usd": 0.012}
    to = {"provider": "anthropic", "model": "m-2", "anew": True, "cost_usd": 0.25}
    return {"session_id": "s-1", "changes": True, "tokens": 40_000, "stays": stays, "to": to, "warm_until": None} | more


@pytest.fixture(autouse=True)
def priced(surface: Surface) -> None:
    surface.sessions["s-1"] = {"id": "s-1", "model": "m-1", "provider": "anthropic", "cap_usd": None}
    surface.switch = _price()


def _patches(surface: Surface) -> list[object]:
    return [one.body for one in surface.asked if one.method == "PATCH"]


@pytest.mark.parametrize(("answer", "code", "sent"), [("y", 0, [{"model": "m-2"}]), ("n", 1, []), ("", 1, [])])
def test_on_a_terminal_the_price_is_told_and_only_a_yes_switches(
    surface: Surface, answer: str, code: int, sent: list[object]
) -> None:
    with closing(Typist("s-1", "m-2", command="model", environment=os.environ)) as typist:
        typist.see("[y/N]")
        assert "m-2 (anthropic): about 40,000 tokens are read anew for $0.2500" in typist.shown
        assert "m-1 (anthropic), if you stay: the same are read from its cache for $0.0120" in typist.shown
        assert "about $0.2380 more" in typist.shown
        assert _patches(surface) == [], "it was switched before anybody had agreed"
        typist.type(answer)
        assert typist.leave() == code
    assert _patches(surface) == sent


def test_without_a_terminal_nothing_changes_until_yes_is_given(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "s-1", "m-2"]) == 2
    said = capsys.readouterr().err
    assert "switch_unconfirmed" in said
    assert "--yes" in said
    assert "$0.2500" in said
    assert _patches(surface) == []
    assert main(["model", "s-1", "m-2", "--yes"]) == 0
    assert _patches(surface) == [{"model": "m-2"}]
    assert "$0.2500" in capsys.readouterr().err


def test_what_changes_nothing_is_not_asked_about(surface: Surface) -> None:
    surface.switch = _price(changes=False)
    assert main(["model", "s-1", "m-1"]) == 0


def test_what_is_not_known_is_said_and_never_called_nothing(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.switch = _price()
    surface.switch["to"] |= {"cost_usd": None}
    assert main(["model", "s-1", "m-2", "--yes"]) == 0
    said = capsys.readouterr().err
    assert "at a price that is not known" in said
    assert "more, before" not in said
    surface.switch = _price(tokens=0)
    assert main(["model", "s-1", "m-2", "--yes"]) == 0
    assert "there is nothing to read anew" in capsys.readouterr().err
