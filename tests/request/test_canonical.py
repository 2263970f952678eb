"""Canonical text: always UTF-8, never another number than was written, never what a provider refuses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.request import canonical
from tests.request.made import STEADY

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
with_surrogates = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\ud800\udfff\x00\x7f\u2028"))


def test_it_is_compact_keeps_key_order_and_leaves_unicode_as_it_is() -> None:
    assert canonical.dump({"z": 1, "a": [1.0, 1e22, "ü→"], "ключ": None}) == '{"z":1,"a":[1.0,1e+22,"ü→"],"ключ":null}'


def test_a_lone_surrogate_is_escaped_so_that_the_text_encodes() -> None:
    assert canonical.dump({"\udc00": "a\ud800b"}) == '{"\\udc00":"a\\ud800b"}'


def test_nul_is_escaped_so_that_postgres_takes_the_text() -> None:
    assert canonical.dump("a\x00b") == '"a\\u0000b"'


@STEADY
@given(anything)
def test_what_was_dumped_loads_as_the_same_value(value: object) -> None:
    assert canonical.load_strict(canonical.dump(value)) == value


@STEADY
@given(with_surrogates)
def test_every_text_encodes_and_holds_no_nul(text: str) -> None:
    dumped = canonical.dump(text)
    assert "\x00" not in dumped
    assert json.loads(dumped.encode()) == json.loads(json.dumps(text))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_a_number_that_is_not_finite_is_refused_on_the_way_out(value: object) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical.dump(value)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        '{"a":Infinity}',
        "[-Infinity]",
        "1e999",
        '{"a":-1e400}',
        "{'a':1}",
        '{"a":1,}',
        "",
        " ",
        '"a\nb"',
        '{"a":1} x',
        "[" * 100_000,
    ],
)
def test_what_is_not_strictly_json_is_refused_on_the_way_in(text: str) -> None:
    with pytest.raises(ValueError):
        canonical.load_strict(text)


def test_of_a_repeated_key_the_last_value_counts() -> None:
    assert canonical.load_strict('{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"'])
def test_only_an_object_is_an_object(text: str) -> None:
    with pytest.raises(ValueError, match="not an object"):
        canonical.load_object(text)
