"""Source partitions and offsets as typed: one JSON value to its end, read in one way only."""

from __future__ import annotations

import pytest

from eosctl.core.offsets.records import typed_offset, typed_partition
from eosctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('{"position":1}0', "nothing may follow the JSON value: '0'", id="a digit behind the brace"),
        pytest.param('{"position":1} {"position":2}', "nothing may follow", id="two offsets"),
        pytest.param('{"position":1,"position":2}', "member 'position' is given twice", id="one name twice"),
        pytest.param('{"position":1e400}', "1e400 is beyond", id="a number that becomes infinite"),
        pytest.param('{"position":NaN}', "NaN is not JSON", id="not a number"),
        pytest.param('{"position":010}', "at character 14", id="a leading zero, which Java reads over"),
        pytest.param('{"position":1', "at character 14", id="cut off"),
        pytest.param("[1]", "is not an offset", id="a list"),
        pytest.param("null", "is not an offset", id="null"),
        pytest.param("[" * 100_000, "it is no JSON", id="deeper than anything"),
    ],
)
def test_what_is_no_offset_as_typed_is_refused_with_the_reason(text: str, reason: str) -> None:
    """`{"position":1}0` wrote 1: as in a topic, what follows the first JSON value was not looked at."""
    with pytest.raises(UsageError) as caught:
        typed_offset(text)
    assert reason in caught.value.message
    assert caught.value.hint == 'Write a JSON object, say {"position":0}; or use reset.'


@pytest.mark.parametrize("text", ['{"f":"a"}0', '{"f":"a"}]', '{"f":"a"},1', '{"f":"a","f":"b"}', "[]", "f"])
def test_what_is_no_source_partition_as_typed_is_refused(text: str) -> None:
    """`{"f":"a"}]0` was the source partition of f, and a reset of it deleted that one."""
    with pytest.raises(UsageError, match="is not a source partition") as caught:
        typed_partition("c", text)
    assert caught.value.hint


def test_blanks_around_and_any_order_are_fine() -> None:
    assert typed_offset(' {"a": 1.5, "b": null}\n') == {"a": 1.5, "b": None}
    one, other = typed_partition('c"', ' {"f":"a","g":1}'), typed_partition('c"', '{"g": 1, "f": "a"} ')
    assert (one.identity, one.connector) == (other.identity, 'c"')
    assert typed_partition("c", "null").partition is None
