"""Offsets that a connector is given: of another one, here or on a profile's cluster; and what Connect finds of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.create.given import GivenOffsets, gather_given
from eosctl.errors import EosctlError, NotFoundError, RefusedError
from eosctl.offsets.steps import lost_partitions
from eosctl.target import Target
from tests.fakes.placing import PlaceWorld, key_of, position
from tests.fakes.world import OFFSETS

THERE = ClientSettings(("there:9092",))


def given(app: App, offsets: str) -> GivenOffsets:
    found = gather_given(app, offsets, connector="c", stdin=io.BytesIO())
    assert found is not None
    return found


def offsets_in(found: GivenOffsets) -> dict[bytes, bytes | None]:
    pairs = [zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True) for table in found.file.tables()]
    return {key: value for each in pairs for key, value in each}


@pytest.fixture
def there() -> PlaceWorld:
    return PlaceWorld(cluster_id="there", group_id="g2")


@pytest.fixture
def both(app: App, world: PlaceWorld, there: PlaceWorld) -> App:
    """The cluster of the tests, and another one by the profile `prod`."""

    def at(asked: App) -> PlaceWorld:
        return there if asked.target.client == THERE else world

    target = Target(client=THERE, group_id="g2", connect_urls=app.target.connect_urls, connect=app.target.connect)
    return replace(
        app,
        target_of=lambda _profile: target,
        open_topics=lambda asked: at(asked).topics.open(asked),
        open_transactions=lambda asked: at(asked).brokers.open_transactions(asked),
        open_worker=lambda asked, url: at(asked).open_worker(asked, url),
    )


def test_offsets_come_from_a_profiles_cluster(both: App, there: PlaceWorld) -> None:
    there.place("old", state="STOPPED")
    found = given(both, "old@prod")
    assert (found.profile, found.running, found.connector) == ("prod", None, "old")
    assert offsets_in(found) == {key_of("c", "f"): position(3)}


def test_one_that_runs_there_is_named(both: App, there: PlaceWorld) -> None:
    there.place("old")
    found = given(both, "old@prod")
    assert found.running is not None
    assert "RUNNING" in found.running


def test_a_connector_without_offsets_gives_none(app: App, world: PlaceWorld) -> None:
    world.place("old", state="STOPPED")
    world.topics.put(OFFSETS, key_of("old", "f"), None)
    with pytest.raises(NotFoundError):
        given(app, "old")
    with pytest.raises(NotFoundError):
        given(app, "nobody")


def test_offsets_that_a_transaction_hides_are_not_given(app: App, world: PlaceWorld) -> None:
    world.place("old", state="STOPPED")
    world.topics.open_transaction(OFFSETS, partition_for(key_of("old", "f"), 5), key=key_of("old", "f"))
    with pytest.raises(RefusedError):
        given(app, "old")


@pytest.mark.parametrize("name", ["none.ndjson", "./none", "none.json", "file:none"])
def test_what_looks_like_a_file_is_one(app: App, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EosctlError, match="cannot read"):
        given(app, name)


def key(raw: bytes) -> OffsetKey:
    found = decode_key(raw)
    assert isinstance(found, OffsetKey)
    return found


def test_null_is_a_loss_unless_the_key_is_spelled_otherwise() -> None:
    """A null for a key in REST's own spelling counted as one that only the tasks find: they would not."""
    partition = {"a": "1", "b": "2"}
    null = [{"partition": partition, "offset": None}]
    usual, other = key(b'["c",{"a":"1","b":"2"}]'), key(b'["c",{"b":"2","a":"1"}]')
    assert lost_partitions("c", null, [usual]) == (null, 0)
    assert lost_partitions("c", null, [other]) == ([], 1)
    assert lost_partitions("c", null, [other, usual]) == (null, 0)
    assert lost_partitions("c", null, []) == (null, 0)
    assert lost_partitions("c", [{"partition": partition, "offset": {"n": 1}}], []) == ([], 0)


def test_offsets_that_the_connector_has_reset_in_its_own_topic_are_named(app: App, world: PlaceWorld) -> None:
    """As Kafka documents it the global one counts; at runtime the connector would start over."""
    world.place("old", state="STOPPED", offsets_storage_topic="own")
    world.topics.put("own", key_of("old", "f"), None)
    world.topics.put(OFFSETS, key_of("old", "f"), position(2))
    assert [each.code for each in given(app, "old").problems] == ["given_after_reset"]
    world.topics.put("own", key_of("old", "f"), position(3))
    assert given(app, "old").problems == ()
