"""Bad input, by name: each is refused with its code and a sentence, or taken as it is."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.serving import Api, Person

TEN = 10 * 1024 * 1024


def _send(person: Person, raw: bytes) -> httpx.Response:
    return person.http.post(f"/v1/sessions/{person.session()}/turns", content=raw)


def _payload(api: Api) -> str:
    (row,) = api.rows("select payload from inbox order by id desc limit 1")
    return row["payload"]


def _refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert (answer.status_code, body["code"], body["status"]) == (status, code, status), body
    assert body["detail"]
    return body


def test_ten_megabytes_of_input_are_taken_and_one_byte_more_is_not(api: Api, anna: Person) -> None:
    assert _send(anna, json.dumps({"input": "x" * TEN}).encode()).status_code == 202
    assert len(_payload(api)) == TEN + len('[{"type":"text","text":""}]')
    _refused(_send(anna, json.dumps({"input": "x" * (TEN + 1)}).encode()), 413, "input_too_large")
    split = [{"type": "text", "text": "é" * (TEN // 4)}, {"type": "text", "text": "é" * (TEN // 4) + "x"}]
    _refused(_send(anna, json.dumps({"input": split}, ensure_ascii=False).encode()), 413, "input_too_large")


def test_a_body_beyond_its_bound_is_refused_with_a_sentence(anna: Person) -> None:
    _refused(_send(anna, b'{"input": "' + b"x" * (13 * 1024 * 1024) + b'"}'), 413, "body_too_large")


def test_nul_and_marks_stay_and_lone_surrogates_become_replacement_characters(api: Api, anna: Person) -> None:
    assert _send(anna, rb'{"input": "a\u0000b \u202e\u200f \ud83d\ude00 \ud800 c\udfff"}').status_code == 202
    assert _payload(api) == '[{"type":"text","text":"a\\u0000b \u202e\u200f \U0001f600 \ufffd c\ufffd"}]'
    assert _send(anna, b'{"input": "raw \xed\xa0\x80 surrogate"}').status_code == 202
    assert _payload(api) == '[{"type":"text","text":"raw \ufffd surrogate"}]'


def test_a_title_with_nul_and_surrogates_is_stored_with_replacements(anna: Person) -> None:
    answer = anna.http.post("/v1/sessions", content=rb'{"title": "a\u0000b\ud800"}')
    assert answer.json()["title"] == "a\ufffdb\ufffd"


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003\u00a0"])
def test_an_empty_or_blank_input_is_refused(api: Api, anna: Person, text: str) -> None:
    _refused(_send(anna, json.dumps({"input": text}).encode()), 422, "input_empty")
    _refused(_send(anna, json.dumps({"input": [{"type": "text", "text": text}]}).encode()), 422, "input_empty")
    _refused(_send(anna, b'{"input": []}'), 422, "input_empty")
    assert api.rows("select 1 from turns where requested_by = %s", anna.id) == []


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ({"type": "image", "artifact": "x"}, "input_block_unsupported"),
        ({"type": "file", "artifact": "x"}, "input_block_unsupported"),
        ({"type": "tool_result", "content": "x"}, "input_block_invalid"),
        ({"type": "text", "text": 7}, "input_block_invalid"),
        ({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, "input_block_invalid"),
        ({}, "input_block_invalid"),
    ],
)
def test_only_text_blocks_are_taken_for_now(anna: Person, block: dict[str, Any], code: str) -> None:
    body = _refused(_send(anna, json.dumps({"input": [block]}).encode()), 422, code)
    assert body["detail"].startswith("input.0:")


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"\xff\xfe",
        b'{"input": NaN}',
        b"[" * 100_000,
        b'{"input":' * 5000 + b"1" + b"}" * 5000,
    ],
)
def test_a_body_that_is_no_object_is_refused(anna: Person, raw: bytes) -> None:
    answer = _send(anna, raw)
    assert answer.status_code == 422
    assert answer.json()["code"] in {"body_invalid", "body_not_utf8"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cap_usd", 0), ("cap_usd", -1), ("cap_usd", "free"), ("cap_usd", "NaN"), ("cap_usd", 1e300),
        ("max_steps", 0), ("max_steps", 1001), ("max_steps", "9"), ("max_steps", True), ("max_steps", 1.5),
        ("on_busy", "wait"), ("on_busy", None), ("input", 5), ("input", None), ("inputs", "misspelt"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_fault(anna: Person, field: str, value: Any) -> None:
    body = {"input": "x", field: value}
    found = _refused(_send(anna, json.dumps(body).encode()), 422, "input_invalid")
    assert any(one["field"].split(".")[0] == field and one["fault"] for one in found["errors"]), found
    assert field in found["detail"]


@pytest.mark.parametrize("model", ["", " ", "a b", "x" * 201, "-rf", "m\n", "модель", "a;drop table"])
def test_a_model_name_is_checked(anna: Person, model: str) -> None:
    found = _refused(anna.post("/v1/sessions", {"model": model}), 422, "input_invalid")
    assert found["errors"][0]["field"] == "model"


def test_unknown_people_are_refused_and_people_need_their_audience(anna: Person, ben: Person) -> None:
    unknown = {"audience": "people", "people": ["01900000-0000-7000-8000-000000000000"]}
    _refused(anna.post("/v1/sessions", unknown), 422, "people_unknown")
    _refused(anna.post("/v1/sessions", {"people": [str(ben.id)]}), 422, "input_invalid")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "cursor=zzz", "cursor=azo5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"]
)
def test_a_wrong_page_is_refused(anna: Person, query: str) -> None:
    answer = anna.http.get(f"/v1/sessions?{query}")
    assert answer.status_code == 422
    assert answer.json()["code"] in {"input_invalid", "cursor_invalid"}


def test_unknown_addresses_and_methods_are_problems_too(anna: Person) -> None:
    _refused(anna.get("/v1/nothing/here"), 404, "not_found")
    _refused(anna.post("/v1/sessions/x/rewind", {}), 404, "not_found")
    answer = anna.http.put("/v1/sessions")
    _refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"]
