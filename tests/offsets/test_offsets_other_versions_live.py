"""A connector moves to a topic of its own on the newest workers, the first that can stop it, and older ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.other_versions import OtherSource, on
from tests.sandbox_fixtures import GROUP, once_there

pytestmark = pytest.mark.live

Eosctl = Callable[..., Any]


@pytest.fixture
def eosctl(other: Stack, invoke: Invoke) -> Eosctl:
    """Runs `eosctl offsets …` against the other stack and returns the JSON envelope."""
    where = ["-b", other.bootstrap_servers, "-u", other.urls(GROUP)[0], "-g", GROUP]
    return lambda *words: invoke(*where, "offsets", *words, "-o", "json").json()


def delivered(source: OtherSource, count: int = 0) -> Counter[bytes | None]:
    """How often each line was delivered, once `count` of them are there."""
    return once_there(count, lambda: Counter(message.value() for message in source.cluster.messages(source.topic)))


@on("3.5.1")
def test_without_a_merge_everything_is_delivered_again(other_source: OtherSource) -> None:
    """What Kafka does, against its documentation."""
    other_source.put(**{"offsets.storage.topic": f"offsets-{other_source.name}"})
    assert delivered(other_source, 4) == {b"one": 2, b"two": 2}, "the file is read again"


@on("4.4.0", "3.5.1")
def test_with_switch_nothing_is_lost_or_delivered_twice_and_reset_reads_all_again(
    eosctl: Eosctl, other_source: OtherSource
) -> None:
    which, topic = ("--connector", other_source.name), f"offsets-{other_source.name}"
    moved = eosctl("switch", *which, "--to", topic, "--yes")
    assert moved["exit_code"] == 0, moved["errors"]
    other_source.offsets_topic = topic
    other_source.append("three", "four")
    other_source.wait_position(19)
    assert delivered(other_source, 4) == Counter([b"one", b"two", b"three", b"four"])

    other_source.halt()
    gone = eosctl("reset", *which, "--all-partitions", "--yes")
    assert (gone["exit_code"], gone["data"]["via"]) == (0, "topic"), gone["errors"]
    assert other_source.offset() is None
    assert eosctl("verify", gone["data"]["backup"])["exit_code"] == 0
    other_source.go_on()
    assert delivered(other_source, 8).total() == 8, "the whole file is read again"


@on("3.3.2")
def test_where_no_connector_can_be_stopped_what_switch_advises_does_the_same(
    eosctl: Eosctl, other_source: OtherSource
) -> None:
    """It advised to stop the group, merge and then change the config, before which tasks ran again and moved on."""
    refused = eosctl("switch", "--connector", other_source.name, "--to", "any", "--yes")
    assert refused["errors"][0]["code"] == "unsupported"
    other_source.halt()
    which = ("--connector", other_source.name, "--dedicated-topic", "offsets-{connector}")
    other_source.append("three")
    merged = eosctl("merge", *which, "--into", "dedicated", "--yes")
    assert (merged["exit_code"], merged["data"]["summary"]["written"]) == (0, 1), merged["errors"]
    other_source.offsets_topic = f"offsets-{other_source.name}"
    other_source.put(**{"offsets.storage.topic": other_source.offsets_topic})
    other_source.wait_position(14)
    assert delivered(other_source, 3) == Counter([b"one", b"two", b"three"])
