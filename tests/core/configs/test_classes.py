"""A connector's class, in the spellings that Connect takes."""

from __future__ import annotations

import pytest

from eosctl.connectors.topics import configured_topics
from eosctl.core.configs.records import is_class


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("org.apache.kafka.connect.mirror.MirrorSourceConnector", True),
        ("MirrorSourceConnector", True),
        ("MirrorSource", True),
        (" MirrorSource ", True),
        ("MirrorCheckpointConnector", False),
        ("com.example.NoMirrorSourceConnector", False),
        ("", False),
    ],
)
def test_a_class_is_known_by_each_of_its_names(given: str, expected: bool) -> None:
    assert is_class({"connector.class": given}, "MirrorSourceConnector") is expected
    assert not is_class({}, "MirrorSourceConnector")


@pytest.mark.parametrize("name", ["MirrorSource", "MirrorSourceConnector", " MirrorSource\n"])
def test_the_topics_of_a_mirror_are_known_by_each_of_its_names(name: str) -> None:
    """Of `MirrorSource` nobody knew which topics it writes to."""
    assert configured_topics({"connector.class": name, "source.cluster.alias": "A"}).written == ("A.*",)
