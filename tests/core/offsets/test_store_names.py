"""Names of stores, here and on the clusters of profiles."""

from __future__ import annotations

import pytest

from eosctl.core.offsets.names import StoreName, parse_store, topic_for
from eosctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("global", StoreName("global")),
        ("dedicated", StoreName("dedicated")),
        ("connect-offsets", StoreName("connect-offsets")),
        ("connect-offsets@prod", StoreName("connect-offsets", "prod")),
        ("global@prod", StoreName("global", "prod")),
    ],
)
def test_names(text: str, expected: StoreName) -> None:
    assert (parse_store(text), str(expected)) == (expected, text)


@pytest.mark.parametrize(
    "text", ["", "@", "topic@", "@prod", "dedicated@prod", "a b", "a/b", "..", ".", "x" * 250, "o-{connector}", "ü"]
)
def test_what_is_no_store(text: str) -> None:
    with pytest.raises(UsageError):
        parse_store(text)


def test_a_pattern_of_stores() -> None:
    assert parse_store("offsets-{connector}@prod", pattern=True) == StoreName("offsets-{connector}", "prod")


@pytest.mark.parametrize(
    ("connector", "topic"),
    [
        ("orders", "o-orders"),
        ("x.parquet", "o-x.parquet"),
        ("orders@prod", None),
        ("a/b", None),
        ("ä", None),
        ("a b", None),
        ("x" * 248, None),
    ],
)
def test_a_pattern_gives_topics_and_nothing_else(connector: str, topic: str | None) -> None:
    """A connector `orders@prod` was taken for a topic of another cluster, one with a slash for a file."""
    if topic is not None:
        assert topic_for("o-{connector}", connector) == topic
        return
    with pytest.raises(UsageError, match=r"^connector .*: o-\{connector\} gives '.*', which can't be a topic"):
        topic_for("o-{connector}", connector)
