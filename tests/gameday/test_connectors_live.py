"""Incidents of connectors and their tasks: fenced, refused by brokers, failing at their records, half moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.core.ids import task_transactional_id
from eosctl.sandbox.operations import Zombie
from tests.gameday.ground import Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import PATIENCE_S, rest, wait_until

pytestmark = pytest.mark.live


@contextmanager
def fenced_by_eosctl(ground: Ground, name: str) -> Iterator[None]:
    with ground.source(name) as source:
        ground.eosctl("fence", "--connector", name, "--live")
        source.append("two")
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to notice")
        yield
        source.wait_position(8)


@contextmanager
def id_taken_over(ground: Ground, name: str) -> Iterator[None]:
    """Somebody else's producer has the id of the task."""
    with ground.source(name) as source:
        transactional_id = task_transactional_id(ground.group, name, 0)
        servers = ground.stack.bootstrap_servers
        with Zombie(servers, transactional_id, topic=source.topic, record=b"mine"):
            source.append("two")
            wait_until(lambda: source.task_states() == ["FAILED"], what="the task to notice")
            yield
        source.wait_position(8)


@contextmanager
def record_too_large(ground: Ground, name: str) -> Iterator[None]:
    with ground.source(name, **{"producer.override.max.request.size": "1000"}) as source:
        source.append("x" * 2000)
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to fail")
        yield


def _allow_larger_records(ground: Ground) -> None:
    [name] = rest(f"{ground.urls[0]}/connectors")
    config = rest(f"{ground.urls[0]}/connectors/{name}")["config"]
    rest(f"{ground.urls[0]}/connectors/{name}/config", "PUT", config | {"producer.override.max.request.size": "9000"})


@contextmanager
def switch_that_failed(ground: Ground, name: str) -> Iterator[None]:
    """The new offsets topic takes no record: the connector stays STOPPED."""
    own = f"own-{name}"
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    # markers fit in, or the coordinator would never end the transaction, and nobody else have its id: Kafka 4.3
    settings = {"cleanup.policy": "compact", "max.message.bytes": "100"}
    admin.create_topics([NewTopic(own, 1, 1, config=settings)])[own].result(PATIENCE_S)
    with ground.source(name) as source:
        done = ground.invoke("offsets", "switch", "--connector", name, "--to", own, "--yes")
        assert done.exit_code not in (0, 6), (done.stdout, done.stderr)
        assert source.rest("/status")["connector"]["state"] == "STOPPED", (done.stdout, done.stderr)
        yield
        source.append("two")
        source.wait_position(8)


@contextmanager
def timeout_too_long(ground: Ground, name: str) -> Iterator[None]:
    with ground.source(name) as source:
        source.put(**{"producer.override.transaction.timeout.ms": "1000000", "offsets.topic": "mine"})
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to be refused")
        yield


@contextmanager
def acks_1(ground: Ground, name: str) -> Iterator[None]:
    with ground.source(name) as source:
        source.put(**{"producer.override.acks": "1"})
        wait_until(lambda: source.task_states() == ["FAILED"], what="the task to be refused")
        yield


def _no_overrides(ground: Ground) -> None:
    [name] = rest(f"{ground.urls[0]}/connectors")
    config = rest(f"{ground.urls[0]}/connectors/{name}")["config"]
    plain = {key: value for key, value in config.items() if "override" not in key and key != "offsets.topic"}
    rest(f"{ground.urls[0]}/connectors/{name}/config", "PUT", plain)


INCIDENTS = (
    Incident(
        "a running task was fenced with eosctl",
        fenced_by_eosctl,
        (Named("task_fenced_or_expired", "{}/0"),),
        ("eosctl connectors restart",),
    ),
    Incident(
        "another producer took a task's id",
        id_taken_over,
        (Named("task_fenced_or_expired", "{}/0"),),
        ("eosctl connectors restart",),
    ),
    Incident(
        "a record is too large",
        record_too_large,
        (Named("record_too_large", "{}/0"),),
        by_hand=_allow_larger_records,
    ),
    Incident(
        "acks=1",
        acks_1,
        (Named("producer_refuses", "{}", follows=("producer_refuses",)),),
        by_hand=_no_overrides,
    ),
    Incident(
        "a transaction timeout that brokers refuse",
        timeout_too_long,
        (
            Named("timeout_above_broker", "{}", follows=("timeout_refused",)),
            Named("idle_property", "{}"),
        ),
        by_hand=_no_overrides,
    ),
    Incident(
        "a switch of offsets failed half-way",
        switch_that_failed,
        (Named("switch_unfinished", "{}"),),
        ("eosctl offsets switch --connector {} --to global",),
    ),
)


@pytest.mark.parametrize("incident", INCIDENTS, ids=str)
def test_it_is_named_and_the_printed_remedy_heals(incident: Incident, ground: Ground, unique: str) -> None:
    play(incident, ground, unique)
