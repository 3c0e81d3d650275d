"""Batches over TLS and SASL, as a principal that may do only some of it: the missing right is named, and grantable."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not listed as re-exported
from msgspec.structs import replace

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.properties import parse_properties
from eosctl.core.records import Batch, OutRecord, Window
from eosctl.deadline import Deadline
from eosctl.errors import UnauthorizedError
from eosctl.kafka.batches.log import NativeBatchLog
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.sandbox_fixtures import PATIENCE_S
from tests.secure_user import Scene

pytestmark = pytest.mark.live


def read(settings: ClientSettings, topic: str) -> list[Batch]:
    with NativeBatchLog(settings, deadline=Deadline.after(PATIENCE_S)) as log:
        return list(log.scan(log.plan([topic], Window()), check_crc=True))


def test_rights_one_by_one(scene: Scene) -> None:
    stack, topic = scene.secure.stack, scene.topic(scene.unique)
    with KafkaTopicClient(ClientSettings((stack.bootstrap_servers,)), deadline=Deadline.after(PATIENCE_S)) as store:
        store.write([OutRecord(topic, b"k", b"v", 0)])
    path = scene.config()
    found = client_from_properties(parse_properties(path.read_text(), source=str(path))).settings
    settings = replace(found, bootstrap_servers=(stack.secure_bootstrap_servers,))
    for operation in ("Describe", "Read"):
        with pytest.raises(UnauthorizedError) as caught:
            read(settings, topic)
        assert f"--operation {operation}" in (caught.value.hint or ""), caught.value
        scene.grant(ResourceType.TOPIC, topic, operation.upper())
    assert [(each.base_offset, each.crc_ok) for each in read(settings, topic)] == [(0, True)]
