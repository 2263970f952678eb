"""Arrays as text: what goes in comes out, whatever it looks like."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.store.arrays import array
from tests.store.conftest import Rows

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_texts_of_any_look_come_back_as_they_were(rows: Rows, texts: list[str | None]) -> None:
    assert rows.value("select %s::text[]", array(texts)) == texts


def test_what_looks_like_syntax_is_text(rows: Rows) -> None:
    texts = ["", "NULL", "null", "{", '"', "\\", "a,b", " x ", '{"a":[1,"\\u0000"]}', None]
    assert rows.value("select %s::text[]", array(texts)) == texts


def test_integers_and_booleans(rows: Rows) -> None:
    assert rows.value("select %s::bigint[]", array([1, -2, None, 2**60])) == [1, -2, None, 2**60]
    assert rows.value("select %s::bool[]", array([True, False, None])) == [True, False, None]
