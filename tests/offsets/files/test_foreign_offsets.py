"""Offsets that others wrote: imported from what their tools print and from Strimzi's ConfigMap, and exported to one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eosctl.core.offsets.records import decode_key
from eosctl.core.offsets.views import fold_store
from eosctl.core.records import Record, TopicRead
from eosctl.errors import InputFileError, UsageError
from eosctl.offsets.files.offsets_file import OffsetsFile, parse_offsets_file
from eosctl.offsets.files.rules import RestBody, rest_body
from tests.core.offsets.stores import NO_SPOOL

PRINTED = Path(__file__).parents[2] / "core" / "kept" / "printed"
MIRROR = "east->west.MirrorSourceConnector"
STRIMZI = b"""\
apiVersion: v1
kind: ConfigMap
metadata:
  name: cdc-offsets
  ownerReferences:
    - {apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaConnector, name: cdc, uid: "1"}
data:
  offsets.json: |
    {"offsets":[{"partition":{"server":"cdc"},"offset":{"lsn":12345}},{"partition":{"server":"old"},"offset":null}]}
"""


def parse(content: bytes, *connectors: str) -> OffsetsFile:
    return parse_offsets_file(io.BytesIO(content), NO_SPOOL, name="f", connectors=connectors)


def pairs(file: OffsetsFile) -> list[tuple[bytes, bytes | None]]:
    return [(row["key"], row["value"]) for table in file.tables() for row in table.select(["key", "value"]).to_pylist()]


def test_what_the_console_consumer_printed_is_imported_with_its_caution() -> None:
    file = parse((PRINTED / "console-offsets.txt").read_bytes(), "cdc")
    assert pairs(file) == [(b'["cdc",{"filename":"/srv/files/in1.txt"}]', b'{"position":6}')]
    assert len(file.cautions) == 1


def test_a_dump_of_segments_is_imported_without_aborted_offsets() -> None:
    file = parse((PRINTED / "dump-aborted.txt").read_bytes())
    assert pairs(file) == [('["gone",{"f":"aé"}]'.encode(), None)]
    assert file.cautions == ()


@pytest.mark.parametrize("content", [STRIMZI, json.dumps(yaml.safe_load(STRIMZI), indent=2).encode()])
def test_strimzis_config_map_is_a_body_with_its_deletions(content: bytes) -> None:
    assert pairs(parse(content, "cdc")) == [
        (b'["cdc",{"server":"cdc"}]', b'{"lsn":12345}'),
        (b'["cdc",{"server":"old"}]', None),
    ]


def test_the_entry_of_a_mirror_makers_connector_has_its_name() -> None:
    body = json.dumps({"offsets": [{"partition": {"cluster": "east"}, "offset": {"offset": 3}}]})
    data = {"east--west.MirrorSourceConnector.json": body, "east--west.MirrorHeartbeatConnector.json": "{}"}
    manifest = yaml.safe_dump({"kind": "ConfigMap", "data": data}).encode()
    assert pairs(parse(manifest, MIRROR)) == [(f'["{MIRROR}",{{"cluster":"east"}}]'.encode(), b'{"offset":3}')]
    with pytest.raises(InputFileError, match="no entry"):
        parse(manifest, "other")


@pytest.mark.parametrize(
    "content",
    [
        b"kind: Secret\ndata: {offsets.json: eA==}\n",
        b"kind: ConfigMap\ndata: {}\n",
        b"kind: ConfigMap\ndata: {offsets.json: 5}\n",
        b"kind: ConfigMap\ndata: {offsets.json: '{'}\n",
        b"kind: ConfigMap\ndata: {offsets.json: '{\"offsets\": {}}'}\n",
        b'kind: ConfigMap\ndata: {offsets.json: \'{"offsets": [{"partition": {"a": 1, "a": 2}, "offset": {}}]}\'}\n',
        STRIMZI + STRIMZI[STRIMZI.index(b"  offsets.json") :],
        b'{"kind": "ConfigMap", "data": {"offsets.json": "{\\"offsets\\": []}"}, "data": '
        b'{"offsets.json": "{\\"offsets\\": []}"}}',
    ],
)
def test_another_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(InputFileError, match=r"^f"):
        parse(content, "cdc")


def test_a_config_map_does_not_say_which_connector_is_meant() -> None:
    with pytest.raises(UsageError):
        parse(STRIMZI)


def exported(connector: str, partition: dict[str, object], offset: bytes) -> RestBody:
    key = json.dumps([connector, partition], ensure_ascii=False, separators=(",", ":")).encode()
    read = TopicRead("t", (), (Record("t", 0, 0, 1, key, offset),), 1)
    return rest_body(fold_store(read), connector)


@pytest.mark.parametrize("connector", ["cdc", MIRROR, "Orders_Source"])
@pytest.mark.parametrize("text", ["plain", "ü\u2028\x85\x7f\t: #'\"|", "---\n  x", "\ufeff"])
def test_an_exported_config_map_is_read_back(connector: str, text: str) -> None:
    """Whatever stands in a source partition: no character of it ends YAML's block."""
    body = exported(connector, {"server": text}, b'{"lsn":12345}')
    manifest = body.config_map(connector)
    document: Any = yaml.safe_load(manifest)
    assert document["kind"] == "ConfigMap"
    assert document["metadata"]["name"].endswith("-offsets")
    [(key, value)] = pairs(parse(manifest.encode(), connector))
    found = decode_key(key)
    assert (found.connector, found.partition) == (connector, {"server": text})
    assert value == b'{"lsn":12345}'


def test_a_config_map_has_no_room_for_many_offsets() -> None:
    with pytest.raises(UsageError, match="1,048,576"):
        exported("c", {"f": "x" * 1_100_000}, b'{"n":1}').config_map("c")
