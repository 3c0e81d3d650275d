"""Ways in which a connector's config lets records get lost inside committed transactions."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.configs.losses import Losses, losses_of, retry_timeout_ms, takes_snapshots

KAFKAS = "org.apache.kafka.connect"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
AVRO = "io.confluent.connect.avro.AvroConverter"
PLAIN = {"key.converter": f"{KAFKAS}.storage.StringConverter", "value.converter": "JsonConverter"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"errors.tolerance": " ALL "}, {"skipping": ["errors.tolerance=all"]}),
        ({"errors.tolerance": "none"}, {}),
        ({"event.processing.failure.handling.mode": "warn"},
         {"skipping": ["event.processing.failure.handling.mode=warn"]}),
        ({"event.processing.failure.handling.mode": "fail"}, {}),
        ({"value.converter": AVRO}, {"retriable": [f"value.converter={AVRO}"]}),
        ({"value.converter": "AvroConverter"}, {"retriable": ["value.converter=AvroConverter"]}),
        ({"value.converter": "com.acme.Own"}, {"untold": ["value.converter=com.acme.Own"]}),
        ({"value.converter": ""}, {"untold": ["the workers' value.converter"]}),
        ({"header.converter": f"{KAFKAS}.json.JsonConverter"}, {}),
        ({"transforms": "a, b", "transforms.a.type": f"{KAFKAS}.transforms.InsertField$Value",
          "transforms.b.type": "com.acme.Own"},
         {"untold": ["transforms.b.type=com.acme.Own"], "unknown_filters": ["transforms.b.type=com.acme.Own"]}),
        ({"transforms": "f", "transforms.f.type": f"{KAFKAS}.transforms.Filter", "transforms.f.predicate": "p",
          "transforms.f.negate": "true", "predicates": "p",
          "predicates.p.type": f"{KAFKAS}.transforms.predicates.RecordIsTombstone"},
         {"filters": [f"transforms.f.type={KAFKAS}.transforms.Filter (not p: RecordIsTombstone)"]}),
        ({"predicates": "p", "predicates.p.type": "com.acme.Is"}, {"untold": ["predicates.p.type=com.acme.Is"]}),
        # its settings decide
        ({"transforms": "u", "transforms.u.type": UNWRAP},
         {"untold": [f"transforms.u.type={UNWRAP}"], "unknown_filters": [f"transforms.u.type={UNWRAP}"]}),
        ({"skipped.operations": "d"}, {"filters": ["skipped.operations=d"]}),
        ({"skipped.operations": "none"}, {}),
    ],
)  # fmt: skip
def test_what_a_config_allows(more: dict[str, str], expected: dict[str, list[str]]) -> None:
    found = losses_of({**PLAIN, **more})
    names = ("skipping", "retriable", "untold", "filters", "unknown_filters")
    assert {name: list(each) for name in names if (each := getattr(found, name))} == expected


def test_the_workers_converters_count_where_a_connector_has_none() -> None:
    workers = {"key.converter": AVRO, "value.converter": f"{KAFKAS}.json.JsonConverter"}
    assert losses_of({}, workers.get).retriable == (f"key.converter={AVRO}",)
    assert losses_of({}).untold == ("the workers' key.converter", "the workers' value.converter")


@pytest.mark.parametrize(
    ("losses", "with_untold", "count"),
    [
        (Losses(), True, 0),
        (Losses(retriable=("a=b",)), False, 1),
        (Losses(retriable=("a=b",), skipping={"errors.tolerance=all": "drops"}), False, 1),  # that drops these, too
        (Losses(untold=("a=b",)), False, 0),
        (Losses(untold=("a=b",)), True, 1),
        (Losses(filters=("f=g",), unknown_filters=("h=i",)), False, 2),
    ],
)
def test_each_way_is_one_sentence(losses: Losses, with_untold: Any, count: int) -> None:
    assert len(losses.sentences(with_untold=with_untold)) == count


@pytest.mark.parametrize(("timeout", "is_cured"), [("0", False), ("${env:T}", False), ("-1", True)])
def test_a_config_with_the_cure_loses_only_where_its_task_is_stopped(timeout: str, is_cured: bool) -> None:
    """A task of 3.9.2 that was stopped while it repeated went on behind the record."""
    [told] = losses_of({**PLAIN, "value.converter": AVRO, "errors.retry.timeout": timeout}).sentences()
    assert ("those before 3.4 always" in told) is is_cured


@pytest.mark.parametrize(("text", "expected"), [(None, 0), ("-1", -1), ("60000", 60_000), ("${file:a:b}", None)])
def test_for_how_long_connect_repeats(text: str | None, expected: int | None) -> None:
    assert retry_timeout_ms({} if text is None else {"errors.retry.timeout": text}) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"connector.class": "io.debezium.connector.postgresql.PostgresConnector"}, True),
        ({"connector.class": "io.debezium.connector.mysql.MySqlConnector", "snapshot.mode": "no_data"}, False),
        ({"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}, False),
    ],
)
def test_what_takes_snapshots(config: dict[str, str], expected: bool) -> None:
    assert takes_snapshots(config) is expected
