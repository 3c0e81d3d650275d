"""A connector's class, in the spellings that Connect takes."""

from __future__ import annotations

import pytest

from eosctl.core.configs.classes import is_class


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
