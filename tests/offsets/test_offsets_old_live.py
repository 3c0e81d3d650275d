"""A connector moves to a topic of its own on the first workers that can stop it, and on older ones; lines count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.old_versions import OldSource, on
from tests.sandbox_fixtures import GROUP, once_there

pytestmark = pytest.mark.live

Eosctl = Callable[..., Any]


@pytest.fixture
def eosctl(old: Stack, invoke: Invoke) -> Eosctl:
    """Runs `eosctl offsets …` against the old stack and returns the JSON envelope."""
    where = ["-b", old.bootstrap_servers, "-u", old.urls(GROUP)[0], "-g", GROUP]
    return lambda *words: invoke(*where, "offsets", *words, "-o", "json").json()


def delivered(source: OldSource, count: int = 0) -> Counter[bytes | None]:
    """How often each line was delivered, once `count` of them are there."""
    return once_there(count, lambda: Counter(message.value() for message in source.cluster.messages(source.topic)))


@on("3.5.1")
def test_without_a_merge_everything_is_delivered_again(old_source: OldSource) -> None:
    """What Kafka does, against its documentation."""
    old_source.put(**{"offsets.storage.topic": f"offsets-{old_source.name}"})
    assert delivered(old_source, 4) == {b"one": 2, b"two": 2}, "the file is read again"


@on("3.5.1")
def test_with_switch_nothing_is_lost_or_delivered_twice_and_reset_reads_all_again(
    eosctl: Eosctl, old_source: OldSource
) -> None:
    which, topic = ("--connector", old_source.name), f"offsets-{old_source.name}"
    moved = eosctl("switch", *which, "--to", topic, "--yes")
    assert moved["exit_code"] == 0, moved["errors"]
    old_source.offsets_topic = topic
    old_source.append("three", "four")
    old_source.wait_position(19)
    assert delivered(old_source, 4) == Counter([b"one", b"two", b"three", b"four"])

    old_source.halt()
    gone = eosctl("reset", *which, "--all-partitions", "--yes")
    assert (gone["exit_code"], gone["data"]["via"]) == (0, "topic"), gone["errors"]
    assert old_source.offset() is None
    assert eosctl("verify", gone["data"]["backup"])["exit_code"] == 0
    old_source.go_on()
    assert delivered(old_source, 8).total() == 8, "the whole file is read again"


@on("3.3.2")
def test_where_no_connector_can_be_stopped_what_switch_advises_does_the_same(
    eosctl: Eosctl, old_source: OldSource
) -> None:
    """It advised to stop the group, merge and then change the config, before which tasks ran again and moved on."""
    refused = eosctl("switch", "--connector", old_source.name, "--to", "any", "--yes")
    assert refused["errors"][0]["code"] == "unsupported"
    old_source.halt()
    which = ("--connector", old_source.name, "--dedicated-topic", "offsets-{connector}")
    old_source.append("three")
    merged = eosctl("merge", *which, "--into", "dedicated", "--yes")
    assert (merged["exit_code"], merged["data"]["summary"]["written"]) == (0, 1), merged["errors"]
    old_source.offsets_topic = f"offsets-{old_source.name}"
    old_source.put(**{"offsets.storage.topic": old_source.offsets_topic})
    old_source.wait_position(14)
    assert delivered(old_source, 3) == Counter([b"one", b"two", b"three"])
