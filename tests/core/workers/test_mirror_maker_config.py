"""A dedicated MirrorMaker's file: which worker files Kafka makes of it, and which of them is meant."""

from __future__ import annotations

import pytest

from eosctl.core.java.properties import parse_properties
from eosctl.core.workers.config import WorkerConfig, parse_worker_config
from eosctl.core.workers.modes import Mode, flows_of, worker_properties_of
from eosctl.errors import UsageError
from eosctl.group.modes import files_of, mode_of_files, read_worker_file

FILE = """
clusters = a, b
a.bootstrap.servers = k1:9092
b.bootstrap.servers = k2:9092
a->b.enabled = true
exactly.once.source.support = enabled
a->b.exactly.once.source.support = enabled
b.exactly.once.source.support = preparing
b.producer.acks = all
producer.linger.ms = 5
security.protocol = SSL
b.security.protocol = SASL_SSL
ssl.truststore.location = /t
sasl.mechanism = PLAIN
config.storage.topic = cfg
offset.storage.partitions = 3
tasks.max = 4
b.offset.storage.topic = oooo
status.storage.topic = st
listeners = http://:9999
group.id = zzz
dedicated.mode.enable.internal.rest = false
"""
# MirrorMakerConfig(FILE).workerConfig of each of its clusterPairs, Kafka 4.3.1, without its default converters and
# what its admin, producer and consumer take over from the rest
KAFKAS = {
    "a->b": """
bootstrap.servers=k2:9092
client.id=a->b
config.storage.topic=cfg
exactly.once.source.support=preparing
group.id=a-mm2
offset.storage.partitions=3
offset.storage.topic=oooo
producer.acks=all
sasl.mechanism=PLAIN
security.protocol=SASL_SSL
ssl.truststore.location=/t
status.storage.topic=st
tasks.max=4
""",
    "b->a": """
bootstrap.servers=k1:9092
client.id=b->a
config.storage.topic=cfg
group.id=b-mm2
offset.storage.partitions=3
offset.storage.topic=mm2-offsets.b.internal
sasl.mechanism=PLAIN
security.protocol=SSL
ssl.truststore.location=/t
status.storage.topic=st
tasks.max=4
""",
}
BARE = "clusters=a,b\nb.bootstrap.servers=k2:9092\n"


def worker(text: str, group_id: str | None = None, *servers: str) -> WorkerConfig:
    return parse_worker_config(text, source="mm2.properties", group_id=group_id, servers=servers)


def test_each_flows_worker_has_what_kafka_gives_it() -> None:
    properties = parse_properties(FILE, source="mm2.properties")
    made = {str(flow): dict(worker_properties_of(properties, flow).values) for flow in flows_of(properties)}
    assert [values.pop("clusters") for values in made.values()] == ["a, b", "a, b"]
    assert made == {flow: dict(parse_properties(text, source="").values) for flow, text in KAFKAS.items()}


def test_the_flow_that_copies_is_meant_where_no_group_was_named() -> None:
    """The file was read as one of a worker without group and topics, that is disabled."""
    read = worker(FILE)
    assert (read.group_id, read.exactly_once, read.bootstrap_servers) == ("a-mm2", "preparing", ("k2:9092",))
    assert (read.config_topic, read.offset_topic, read.rest_url) == ("cfg", "oooo", None)
    assert worker(FILE, "b-mm2").exactly_once == "disabled"
    assert read.properties.place("exactly.once.source.support") == "mm2.properties:8"


def test_topics_that_the_file_does_not_name_are_those_of_the_source() -> None:
    read = worker(f"{BARE}a->b.enabled=true\n")
    assert (read.config_topic, read.offset_topic, read.status_topic) == (
        "mm2-configs.a.internal", "mm2-offsets.a.internal", "mm2-status.a.internal"
    )  # fmt: skip


def test_a_group_that_only_the_worker_can_resolve_may_be_the_one_that_was_named() -> None:
    assert worker(f"{BARE}a->b.enabled=true\nb.group.id=${{env:G}}\n", "g").unresolved == ("group.id",)


def test_what_looks_like_the_mode_and_is_not() -> None:
    """Only properties of the target's alias reach its worker."""
    right = "b.exactly.once.source.support"
    assert worker(FILE).idle == (("exactly.once.source.support", right), (f"a->{right}", right))
    assert worker(f"{BARE}{right}=enabled\na->b.enabled=true\n").idle == ()


TWO_TARGETS = """clusters=a,b,c
b.bootstrap.servers=k2:9092
c.bootstrap.servers=k3:9092
a->b.enabled=true
a->c.enabled=true
emit.heartbeats.enabled=false
c.exactly.once.source.support=enabled
"""


def test_two_targets_of_one_source_are_told_apart_by_their_brokers() -> None:
    assert worker(TWO_TARGETS, "a-mm2", "k3:9092").exactly_once == "enabled"
    assert worker(TWO_TARGETS, None, "k2:9092").exactly_once == "disabled"


@pytest.mark.parametrize(
    ("text", "group_id", "said"),
    [
        (TWO_TARGETS, "a-mm2", r"several flows: a->b \(group a-mm2\), a->c \(group a-mm2\)"),
        (TWO_TARGETS, None, "several flows"),
        (FILE, "zzz", r"no flow of group zzz: a->b \(group a-mm2\), b->a \(group b-mm2\)"),
        ("clusters=a", None, "no flow$"),
        ("clusters=a,b\nemit.heartbeats.enabled=false", "x", "no flow$"),
    ],
)
def test_a_flow_that_cannot_be_told_is_asked_for(text: str, group_id: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        worker(text, group_id)
    assert "-g" in str(caught.value.hint)


def test_one_property_moves_the_groups_of_all_flows_to_a_target() -> None:
    text = "clusters=a,b,c\nemit.heartbeats.enabled=false\na->c.enabled=true\nb->c.enabled=true\nc->a.enabled=true"
    read = worker(text, "a-mm2")
    assert (read.mode_setting, read.moved_with) == ("c.exactly.once.source.support", ("b-mm2",))
    assert worker(text, "c-mm2").moved_with == ()


@pytest.mark.parametrize("enabled", ["a->b.emit.heartbeats.enabled=true", "a->b.enabled=TRUE"])
def test_a_flow_runs_for_its_topics_or_for_its_heartbeats(enabled: str) -> None:
    text = f"clusters=a,b\nemit.heartbeats.enabled=false\n{enabled}"
    assert list(map(str, flows_of(parse_properties(text, source="f")))) == ["a->b"]


def test_the_file_is_of_each_worker_of_its_group_and_of_no_other() -> None:
    values = worker(FILE).properties.values
    file = read_worker_file("mm2.properties", values)
    plain = read_worker_file("w.properties", {"group.id": "a-mm2"})
    assert files_of(None, [file, plain], group_id="a-mm2") == [file]
    assert files_of("http://x:1", [file, plain], group_id="a-mm2") == [file]
    assert files_of(None, [file, plain], group_id="b-mm2") == []


@pytest.mark.parametrize(
    ("modes", "mode", "said"),
    [
        (["enabled", "enabled"], Mode.ENABLED, "f0 says enabled, which no request can confirm"),
        (["enabled", "disabled"], Mode.UNKNOWN, "f0 says enabled"),
        (["enabled", "${env:M}"], Mode.UNKNOWN, "f0 says enabled"),
        (["${env:M}"], Mode.UNKNOWN, "f0 says what only the worker can resolve"),
    ],
)
def test_what_files_alone_say(modes: list[str], mode: Mode, said: str) -> None:
    files = [read_worker_file(f"f{n}", {"exactly.once.source.support": each}) for n, each in enumerate(modes)]
    refined = mode_of_files(files)
    assert (refined.mode, len(refined.evidence)) == (mode, len(modes))
    assert refined.evidence[0].startswith(said)


def test_no_file_says_nothing() -> None:
    assert mode_of_files([]).mode is Mode.UNKNOWN
