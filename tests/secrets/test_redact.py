"""No text that is stored, sent or shown holds a key."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared import redact
from shared.redact import WITHHELD, Redactor
from workers.tools import dispatch
from workers.tools.context import ToolResult

KEY = 'pa"ss/w+ord=\\ü-123'
FORMS: dict[str, Callable[[str], str]] = {
    "as it stands": str,
    "as JSON": lambda key: json.dumps({"a": key}),
    "percent-encoded": lambda key: f"https://h/?k={quote(key, safe='')}",
    "in hex": lambda key: key.encode().hex(),
    "in capital hex": lambda key: key.encode().hex().upper(),
    "backwards": lambda key: key[::-1],
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in base64 behind one": lambda key: base64.b64encode(b"x" + key.encode() + b"tail").decode(),
    "in base64 behind two": lambda key: base64.b64encode(b"xy" + key.encode() + b"t").decode(),
    "in base64 for addresses": lambda key: base64.urlsafe_b64encode(b"user:" + key.encode()).decode(),
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_known_key_is_taken_out_in_every_form(form: str) -> None:
    text = f"before {FORMS[form](KEY)} after"
    cleaned = Redactor((KEY,)).clean(text)
    assert cleaned.found == 1
    assert cleaned.text.startswith("before ")
    assert cleaned.text.endswith(" after")
    assert "[a secret was here]" in cleaned.text


SHAPES = {
    "sk-ant-api03-" + "aB3_" * 20: "an API key",
    "sk-proj-" + "aB3x" * 12: "an API key",
    "ghp_" + "a1B2" * 9: "a GitHub token",
    "github_pat_" + "a1B2_" * 16: "a GitHub token",
    "glpat-" + "a1B2-" * 5: "a GitLab token",
    "AKIAIOSFODNN7EXAMPLE": "an AWS key",
    "aws_secret_access_key = " + "a1B2/+x9" * 5: "an AWS secret",
    "AIza" + "a1B2_" * 7: "a Google key",
    "xoxb-123456789012-abcdefABCDEF": "a Slack token",
    "https://hooks.slack.com/services/T000/B000/" + "x" * 24: "a Slack hook",
    "npm_" + "a1B2" * 9: "an npm token",
    "pypi-" + "AgEI" * 20: "a PyPI token",
    "hf_" + "aBcD" * 9: "a Hugging Face token",
    "SG." + "a" * 22 + "." + "b" * 43: "a SendGrid key",
    "sk_live_" + "a1B2" * 6: "a Stripe key",
    "123456789:AA" + "a" * 33: "a Telegram token",
    "AGE-SECRET-KEY-1" + "Q" * 58: "an age key",
    "eyJ" + "a" * 30 + ".eyJ" + "b" * 40 + "." + "c" * 43: "a signed token",
    "Authorization: Bearer " + "a1B2.c3" * 6: "a bearer token",
    "postgresql://user:pa55word@host/db": "a password in an address",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNz\n" * 20 + "-----END OPENSSH PRIVATE KEY-----": "a private key",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEcut off here": "a private key",
}


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_what_has_the_shape_of_a_key_is_taken_out_though_nobody_knows_it(number: int) -> None:
    text, what = list(SHAPES.items())[number]
    cleaned = Redactor().clean(f"a = {text}\nb = 1")
    assert f"[{what} was here]" in cleaned.text
    assert cleaned.text.endswith("b = 1") or "cut off" in text  # of a key without an end all that follows may be key


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "123e4567-e89b-12d3-a456-426614174000",
        "the task-list of the risk-averse desk-worker, sk-learn and sk-1",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
        "see https://example.org:8080/path?q=a@b and mailto:a@b.org",
        "Bearer of good news",
        "a do-it-yourself SK of 12:AA",
        "const xox = hf_ + npm_",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor(("known-secret-value",)).clean(text) == redact.Redacted(text, 0)


def test_a_key_file_is_known_by_its_lines_and_a_short_word_is_none() -> None:
    redactor = Redactor(("-----BEGIN X-----\nline-one-of-it\nline-two-of-it\n-----END X-----", "short"))
    assert redactor.clean("a line-two-of-it b short").text == "a [a secret was here] b short"


def test_the_longest_key_is_taken_first() -> None:
    assert Redactor(("key-number-1", "key-number-12")).clean("key-number-12").text == "[a secret was here]"


def test_if_it_cannot_run_the_text_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(("known-secret-value",))

    def fails(self: Redactor, text: str) -> redact.Redacted:
        raise RuntimeError(text)

    monkeypatch.setattr(Redactor, "_cleaned", fails)
    assert redactor.clean("known-secret-value").text == WITHHELD
    monkeypatch.setattr(dispatch, "REDACTOR", redactor)
    assert dispatch.without_keys(ToolResult("known-secret-value", note="known-secret-value")) == ToolResult(
        WITHHELD, note=WITHHELD
    )


def test_ten_megabytes_are_looked_through() -> None:
    text = "words and words and a ghost in eyJ sk- " * 260_000
    assert Redactor(("known-secret-value",)).clean(text) == redact.Redacted(text, 0)


LINE = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text(LINE, min_size=8, max_size=40), st.text())
def test_whatever_stands_around_it_a_known_key_is_gone(before: str, key: str, after: str) -> None:
    cleaned = Redactor((key,)).clean(before + key + after)
    if len(key.strip()) >= redact.LEAST_CHARS and key.strip() not in "[a secret was here]":
        assert cleaned.found >= 1
