"""The estimate counts too much, never too little, and never wildly too much."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import bpe_openai
import pytest

from shared.request import blocks, estimate
from shared.request.estimate import Content
from shared.request.projection import extend, project
from tests.request.made import PREFIX, conversation, row, thinking

HERE = Path(__file__)
PROSE = (
    "The committee met on Thursday evening to consider the report. Nobody had read it to the end, which did not keep "
    "anybody from having an opinion. After two hours the chair proposed to postpone the decision until the figures for "
    "the third quarter were known, and everyone went home content. "
) * 12
GERMAN = "Während der Nachtschicht prüfte die Werkleitung sämtliche Übergabeprotokolle auf Vollständigkeit. " * 30
RUSSIAN = "Ночная смена проверила все отчёты и нашла две ошибки в таблице расходов за третий квартал. " * 30
CHINESE = "夜班工人检查了所有报告，并在第三季度的费用表中发现了两个错误，随后通知了负责人。" * 30
JAPANESE = "夜勤の担当者はすべての報告書を確認し、第三四半期の経費表に二つの誤りを見つけました。" * 30
RECORDS = json.dumps(
    [{"id": n * 7919, "name": f"item-{n}", "price": n * 1.37, "tags": ["a", "b"], "ok": True} for n in range(90)]
)
LOG = "".join(
    f"2026-11-30T02:{n % 60:02d}:11.482Z WARN worker[{n * 37}] retry={n} path=/v1/turns/{n * 101} took=0.{n:03d}s\n"
    for n in range(80)
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {name: {"type": "string", "description": f"The {name} of it."} for name in PROSE.split()},
    }
)
CSV = "".join(f"{n},{n * 17.31:.2f},{n * 3},2026-11-{n % 30:02d},{n * 0.11:.4f}\n" for n in range(200))
BASE64 = base64.b64encode(b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(120))).decode()
HEX = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(60))
EMOJI = "🌙🛠️📋✅🧾🚚🌧️🎯" * 80
MIXED = PROSE + BASE64 + PROSE + RECORDS + CHINESE
TEXTS = {
    "prose": PROSE, "german": GERMAN, "russian": RUSSIAN, "chinese": CHINESE, "japanese": JAPANESE, "json": RECORDS,
    "log": LOG,
    "csv": CSV, "schema": SCHEMA, "base64": BASE64, "hex": HEX, "emoji": EMOJI, "mixed": MIXED,
    "code": HERE.read_text(encoding="utf-8"),
}  # fmt: skip


def counted(text: str) -> int:
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


@pytest.mark.parametrize("name", TEXTS)
def test_it_over_counts_every_class_and_stays_under_three_times(name: str) -> None:
    true, guessed = counted(TEXTS[name]), estimate.estimate_text(TEXTS[name], "gpt-5.5")
    assert true <= guessed <= 3 * true


@pytest.mark.parametrize("name", TEXTS)
def test_a_block_weighs_no_less_than_its_text(name: str) -> None:
    for block in (blocks.text(TEXTS[name]), blocks.tool_result("c1", TEXTS[name])):
        assert estimate.weigh_units([block.encode()]) >= 0.95 * counted(TEXTS[name])


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (PROSE, Content.PLAIN),
        (GERMAN, Content.PLAIN),
        (SCHEMA, Content.STRUCTURED),
        (RECORDS, Content.FIGURES),
        (LOG, Content.FIGURES),
        (CSV, Content.NUMBERS),
        (CHINESE, Content.OTHER_SCRIPT),
        (RUSSIAN, Content.OTHER_SCRIPT),
        (BASE64, Content.DENSE),
        (HEX, Content.DENSE),
        (EMOJI, Content.PICTOGRAPH),
        ("", Content.PLAIN),
    ],
)
def test_each_content_is_told_by_its_bytes(text: str, content: Content) -> None:
    assert estimate.classify(text.encode()[:384]) is content


def test_a_blob_in_the_middle_of_prose_is_not_overlooked() -> None:
    blob = PROSE * 6 + BASE64 * 4 + PROSE * 6
    assert estimate.estimate_text(blob, "gpt-5.5") >= counted(blob)


def test_a_newer_tokenizer_counts_thirty_per_cent_more() -> None:
    request = project(PREFIX, conversation())
    older, newer = (estimate.estimate(request, model) for model in ("claude-sonnet-4-5", "claude-opus-5-5"))
    assert newer == pytest.approx(older * 1.3, abs=1)
    assert estimate.estimate(request, "never-heard-of-it") == newer
    assert estimate.factor("anthropic/claude-opus-4-6-20260101") == 1.0
    assert [estimate.factor(f"claude-opus-4-{minor}") for minor in (5, 7, 8)] == [1.0, 1.3, 1.3]


def test_it_grows_with_the_request_by_its_new_rows_alone() -> None:
    rows = conversation()
    request = project(PREFIX, rows[:1])
    sizes = [estimate.estimate(request)]
    for one in rows[1:]:
        request = extend(request, [one])
        sizes.append(estimate.estimate(request))
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == pytest.approx(estimate.estimate(project(PREFIX, rows)), abs=1)


def test_the_floor_counts_the_tools_and_what_the_provider_adds_for_them() -> None:
    with_tools, without = (project(PREFIX, [], without_tools=flag).weight for flag in (False, True))
    assert with_tools - without > 700


def test_an_image_and_a_signature_do_not_count_by_their_length() -> None:
    image = f'{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{BASE64 * 20}"}}}}'
    assert project(PREFIX, [row(1, "user", image)]).weight < project(PREFIX, []).weight + 5_000
    sealed, plain = thinking(BASE64), blocks.text(BASE64)
    assert estimate.weigh_units([sealed.encode()]) < estimate.weigh_units([plain.encode()]) / 2


@pytest.mark.parametrize(
    ("billed", "baseline", "now", "expected"),
    [(100, 80, 90, 110), (100, 80, 80, 100), (100, 80, 20, 25), (0, 0, 50, 50)],
)
def test_the_projection_is_anchored_on_what_was_billed(billed: int, baseline: int, now: int, expected: int) -> None:
    assert estimate.projected((baseline, billed), now) == expected


def test_a_text_that_does_not_encode_is_estimated_all_the_same() -> None:
    assert estimate.estimate_text("\ud800" * 10) > 0
