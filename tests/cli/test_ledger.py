"""`ledger` as CSV and bars, `ledger reconcile` against what providers export, `budgets`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from api.cli import costs, exports, plot, reconcile
from api.cli.exits import Stop
from api.cli.main import main
from tests.cli.surface import Row, Surface

ANTHROPIC = (
    "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,"
    "usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,"
    "usage_output_tokens,web_search_count,inference_geo,speed\n"
)
OPENAI = (
    "start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,user_id,api_key_id,model,batch,"
    "service_tier,input_tokens,output_tokens,input_cached_tokens\n"
)
SONNET = "2026-11-30,claude-sonnet-5-5,key,Default,standard,≤ 200k,100,5,7,1000,40,0,not_available,\n"
GPT = "1,2,2026-11-30T00:00:00+00:00,2026-12-01T00:00:00+00:00,p,3,u,k,gpt-9-2026-01-01,False,default,900,50,600\n"


def _ours(model: str, provider: str = "anthropic", calls: int = 3, **more: int) -> Row:
    tokens = {"input": 100, "output": 40, "cache_read": 1000, "cache_write": 12}
    spent = {"calls": calls, "assumed_calls": 0, "unknown_calls": 0, "cache_write_5m": 5, "cache_write_1h": 7}
    spent |= {name: value for name, value in more.items() if name in spent}
    tokens |= {name: value for name, value in more.items() if name in tokens}
    return {"day": "2026-11-30", "provider": provider, "model": model, "spent": spent | {"tokens": tokens}}


def _drifts(text: str, *rows: Row) -> list[tuple[str, str, float, str]]:
    return [(one.model, one.kind, one.drift, one.why) for one in reconcile.compare(exports.read(text), rows)]


def test_an_export_that_agrees_has_no_drift() -> None:
    assert _drifts(ANTHROPIC + SONNET, _ours("claude-sonnet-5-5")) == []


def test_lines_of_one_day_and_model_are_added_up_whatever_key_they_are_of() -> None:
    second = SONNET.replace("key", "other").replace(",100,5,7,1000,40,", ",1,0,0,0,2,")
    assert _drifts(ANTHROPIC + SONNET + second, _ours("claude-sonnet-5-5", input=101, output=42)) == []


def test_what_openai_counts_as_input_holds_what_it_read_from_its_cache_and_its_models_are_dated() -> None:
    row = _ours("gpt-9", "openai", input=300, output=50, cache_read=600, cache_write_5m=0, cache_write_1h=0)
    assert _drifts(OPENAI + GPT, row) == []


def test_each_drift_is_named_with_what_may_be_its_cause() -> None:
    rows = [
        _ours("claude-sonnet-5-5", output=30, assumed_calls=1),
        _ours("claude-opus-5-5", input=1, output=0, cache_read=0, cache_write_5m=0, cache_write_1h=0),
    ]
    text = ANTHROPIC + SONNET + SONNET.replace("sonnet-5-5", "haiku-5-5").replace(",100,5,7,1000,40,", ",9,0,0,0,0,")
    assert _drifts(text, *rows) == [
        ("claude-haiku-5-5", "input", 9, "no call of ours: another program uses this provider's account"),
        ("claude-opus-5-5", "input", -1, "not in the export: another account or workspace, or the export ends earlier"),
        ("claude-sonnet-5-5", "output", 10, "1 calls were cut or lost and are assumed"),
    ]
    row = _ours("gpt-9", "openai", calls=2, input=300, output=49, cache_read=600, cache_write_5m=0, cache_write_1h=0)
    assert _drifts(OPENAI + GPT, row) == [("gpt-9-2026-01-01", "output", 1, "3 requests there, 2 calls here")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "export_unknown"),
        ("a,b\n1,2\n", "export_unknown"),
        ("usage_date_utc,model\n2026-11-30,m\n", "export_unknown"),
        (ANTHROPIC, "export_empty"),
        (ANTHROPIC.replace("usage_output_tokens,", "") + SONNET.replace(",40,", ","), "export_broken"),
        (ANTHROPIC + SONNET.replace(",100,", ",-100,"), "export_broken"),
        (ANTHROPIC + SONNET.replace(",100,", ",many,"), "export_broken"),
        (ANTHROPIC + SONNET.replace(",100,", ",1.5,"), "export_broken"),
        (ANTHROPIC + SONNET.replace("2026-11-30", "yesterday"), "export_broken"),
        (ANTHROPIC + SONNET.replace("\n", ",1,2,3\n"), "export_broken"),
        (OPENAI + GPT.replace(",900,", ",500,"), "export_broken"),
    ],
)
def test_an_export_that_is_none_is_refused_with_a_code(text: str, code: str) -> None:
    with pytest.raises(Stop) as stop:
        exports.read(text)
    assert stop.value.code == code


def test_columns_that_nobody_knows_are_refused_by_name_unless_they_are_empty_or_left_out(
    surface: Surface, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, line = ANTHROPIC.replace("\n", ",usage_dream_tokens\n"), SONNET.replace("\n", ",8\n")
    assert exports.read(head + SONNET.replace("\n", ",\n")).unknown == ()
    file = tmp_path / "usage.csv"
    file.write_text("\ufeff" + head + line, "utf-8")
    surface.replies["/v1/ledger/usage"] = json.dumps({"items": [_ours("claude-sonnet-5-5")], "next": None})
    assert main(["ledger", "reconcile", str(file)]) == 1
    assert "usage_dream_tokens" in capsys.readouterr().err
    assert main(["ledger", "reconcile", str(file), "--ignore-unknown"]) == 0
    assert capsys.readouterr().out == "anthropic, 2026-11-30: every kind of token agrees, by day and model\n"
    assert surface.asked[-1].query == {"since": "2026-11-30", "until": "2026-11-30"}
    file.write_text(ANTHROPIC + SONNET.replace(",40,", ",41,"), "utf-8")
    assert main(["ledger", "reconcile", str(file), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["agrees"], [one["drift"] for one in found["drifts"]]) == (False, [1])
    assert main(["ledger", "reconcile", str(tmp_path / "none.csv")]) == 2


ANTHROPIC_COSTS = (
    "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type,"
    "inference_geo,speed,api_key_id,api_key_status\n"
)
SONNET_COST = "2026-11-30,Claude Sonnet 5.5,Default,key,message,≤ 200k,output,0.30,0.30,token,not_available,,k,active\n"
OPENAI_COSTS = (
    "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id,"
    "organization_id,organization_name\n"
)
GPT_COST = "1,2,2026-11-30T00:00:00+00:00,2026-12-01T00:00:00+00:00,0.8958740000000000,usd,,,org-x,Personal\n"
NO_COST = "2,3,2026-12-01T00:00:00+00:00,2026-12-02T00:00:00+00:00,,,,,,\n"


def _cost(model: str, usd: float, provider: str = "anthropic", **more: int) -> Row:
    row = _ours(model, provider, **more)
    row["spent"]["known_usd"] = usd
    return row


def _dollars(text: str, *rows: Row) -> list[tuple[str, float, str]]:
    read = costs.read(text)
    assert read is not None
    return [(one.model, round(one.drift, 6), one.why) for one in reconcile.compare_costs(read, rows)]


def test_dollars_agree_as_far_as_the_lines_of_an_export_are_rounded() -> None:
    two = ANTHROPIC_COSTS + SONNET_COST + SONNET_COST.replace("output,0.30,0.30", "input_no_cache,0.05,0.05")
    for usd in (0.34, 0.359, 0.341):  # two lines of whole cents
        assert _dollars(two, _cost("claude-sonnet-5-5-20260901", usd)) == []
    ((model, drift, why),) = _dollars(two, _cost("claude-sonnet-5-5", 0.2))
    assert (model, drift) == ("claude-sonnet-5-5", 0.15)
    assert why.startswith("dearer there: compare usage")


def test_openais_costs_name_models_only_where_they_are_grouped_and_days_without_any_are_no_drift() -> None:
    text = OPENAI_COSTS + GPT_COST + NO_COST
    ours = (_cost("gpt-9", 0.5, "openai"), _cost("gpt-8", 0.395874, "openai"), _cost("claude-opus-5-5", 9.0))
    assert _dollars(text, *ours) == []
    grouped = OPENAI_COSTS + GPT_COST.replace("usd,,", 'usd,"gpt-9-2026-01-01, input",')
    assert _dollars(grouped, *ours) == [
        ("gpt-8", -0.395874, "not in the export: another account or workspace, or the export ends earlier"),
        ("gpt-9-2026-01-01", 0.395874, "dearer there: compare usage; if that agrees, prices differ (setting `prices`)"),
    ]


def test_dollars_that_are_no_tokens_of_ours_are_named() -> None:
    search = SONNET_COST.replace("output,0.30,0.30,token", ",0.30,0.30,web_search")
    text = ANTHROPIC_COSTS + search + SONNET_COST.replace("Sonnet 5.5", "Haiku 4.5")
    assert _dollars(text, _cost("claude-sonnet-5-5", 0.1, unknown_calls=2)) == [
        ("(no tokens)", 0.3, "searches or code that the provider ran: the ledger counts tokens"),
        ("claude-haiku-4-5", 0.3, "no call of ours: another program uses this provider's account"),
        ("claude-sonnet-5-5", -0.1, "not in the export: another account or workspace, or the export ends earlier"),
    ]
    assert _dollars(ANTHROPIC_COSTS + SONNET_COST, _cost("claude-sonnet-5-5", 0.1, unknown_calls=2)) == [
        ("claude-sonnet-5-5", 0.2, "2 calls have a cost that we do not know"),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ANTHROPIC_COSTS, "export_empty"),
        (OPENAI_COSTS + NO_COST, "export_empty"),
        (OPENAI_COSTS + GPT_COST.replace("usd", "eur"), "export_currency"),
        (OPENAI_COSTS + GPT_COST.replace("0.8958740000000000", "much"), "export_broken"),
        (OPENAI_COSTS + GPT_COST.replace("0.8958740000000000", "NaN"), "export_broken"),
        (OPENAI_COSTS + GPT_COST.replace("2026-11-30T00:00:00+00:00", "yesterday"), "export_broken"),
        (ANTHROPIC_COSTS + SONNET_COST.replace("\n", ",1,2\n"), "export_broken"),
    ],
)
def test_an_export_of_costs_that_is_none_is_refused_with_a_code(text: str, code: str) -> None:
    with pytest.raises(Stop) as stop:
        costs.read(text)
    assert stop.value.code == code


def test_a_column_of_costs_that_nobody_knows_is_refused_by_name(
    surface: Surface, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(ANTHROPIC_COSTS.replace("\n", ",fee_usd\n") + SONNET_COST.replace("\n", ",0.1\n"), "utf-8")
    surface.replies["/v1/ledger/usage"] = json.dumps({"items": [_cost("claude-sonnet-5-5", 0.25)], "next": None})
    assert main(["ledger", "reconcile", str(file)]) == 1
    assert "fee_usd" in capsys.readouterr().err
    assert main(["ledger", "reconcile", str(file), "--ignore-unknown"]) == 1
    told = capsys.readouterr().out.splitlines()[1].split()
    assert told[:6] == ["2026-11-30", "claude-sonnet-5-5", "usd", "$0.2500", "$0.3000", "+$0.0500"]


def test_two_models_whose_names_begin_alike_are_two() -> None:
    """A number that is no date belongs to the name."""
    text = ANTHROPIC + SONNET.replace("sonnet-5-5", "opus-4-8")
    assert [drift[0] for drift in _drifts(text, _ours("claude-opus-4"))].count("claude-opus-4") == 5


def _row(key: str, usd: float | None, **more: Any) -> Row:
    counts = {"calls": 2, "open_calls": 0, "assumed_calls": 0, "cache_write_5m": 3, "cache_write_1h": 4}
    tokens = {"input": 1, "output": 2, "cache_read": 0, "cache_write": 7}
    known = {"cost_usd": usd, "known_usd": usd or 0.5, "unknown_calls": int(usd is None), "reserved_usd": 0.0}
    return {"key": key, "label": key, "tokens": tokens, **counts, **known, **more}


def test_csv_has_every_column_an_unknown_cost_is_empty_and_no_label_is_a_formula(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.lists["ledger"] = [_row("2026-11-30", 1.25), _row("x", None, label="=1+1")]
    surface.total = _row("", 1.75)
    assert main(["ledger", "--by", "model", "--since", "2026-11-01T00:00:00Z", "--csv"]) == 0
    assert surface.asked[0].query == {"by": "model", "since": "2026-11-01T00:00:00Z"}
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["cost_usd"], first["cache_write_1h"], first["known_usd"]) == ("1.25", "4", "1.25")
    assert (second["cost_usd"], second["known_usd"], second["label"]) == ("", "0.5", "'=1+1")


def test_bars_are_as_long_as_their_share_and_nothing_that_was_spent_looks_like_nothing() -> None:
    lines = plot.bars([("a", 8.0, "$8"), ("b", 4.0, "$4"), ("c", 0.001, "$0"), ("d", 0.0, "$0")], 24)
    assert lines == [
        "a " + "█" * 19 + " $8",
        "b " + "█" * 9 + "▌" + " " * 9 + " $4",
        "c ▏" + " " * 18 + " $0",
        "d " + " " * 19 + " $0",
    ]
    assert plot.bars([], 80) == []
    assert len(plot.bars([("x" * 500, 1.0, "$1")], 60)[0]) <= 60


def test_a_plot_says_of_which_calls_the_cost_is_unknown(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    surface.lists["ledger"] = [_row("2026-11-30", 1.25), _row("2026-11-29", None)]
    surface.total = _row("", None)
    assert main(["ledger", "--plot"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["2026-11-29", "2026-11-30", "total"]
    assert lines[0].endswith("$0.5000 and 1 unknown")


def test_a_table_tells_what_is_known_beside_what_is_not_and_what_is_only_assumed(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.lists["ledger"] = [
        _row("2026-11-30", None), _row("2026-11-29", 0.00004), _row("2026-11-28", None, known_usd=0.0),
    ]  # fmt: skip
    surface.total = _row("", None, unknown_calls=2, assumed_calls=3, open_calls=1, reserved_usd=0.25)
    assert main(["ledger"]) == 0
    told = capsys.readouterr()
    assert [line.split("7  ")[-1].strip() for line in told.out.splitlines()[1:4]] == [
        "$0.5000 and 1 unknown", "<$0.0001", "unknown",
    ]  # fmt: skip
    assert "2 calls have a cost that nobody knows" in told.err
    assert "3 calls were cut or lost" in told.err
    assert "1 calls are out and may cost $0.2500" in told.err
    assert main(["ledger", "--csv"]) == 0
    assert ",0.00004,0.00004,0.0" in capsys.readouterr().out


def test_budgets_are_listed_and_set(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "scope": "team", "subject": "team", "name": "team", "period": "month", "window": "2026-11", "until": None,
        "cap_usd": 100.0, "spent_usd": 80.5, "drawn_usd": 0.2, "left_usd": 19.3, "percent": 80,
    }  # fmt: skip
    surface.replies["/v1/budgets"] = json.dumps({"items": [row], "next": None, "zone": "Europe/Berlin"})
    surface.replies["/v1/budgets/team/team/month"] = json.dumps(row)
    assert main(["budgets"]) == 0
    seen = capsys.readouterr()
    assert seen.out.splitlines()[1].split() == [
        "team", "team", "month", "2026-11", "$100.00", "$80.50", "$0.2000", "$19.30", "80", "%",
    ]  # fmt: skip
    assert "Europe/Berlin" in seen.err
    assert main(["budgets", "set", "team", "team", "month", "100", "--was", "none"]) == 0
    assert surface.asked[-1].body == {"cap_usd": "100", "was_usd": None}
    assert "may cost $100.00 a month, $80.50 of it is spent" in capsys.readouterr().out
    assert main(["budgets", "set", "team", "team", "month", "lots"]) == 2
