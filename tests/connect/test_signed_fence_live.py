"""A signed request against a real leader: the signature is right, and the leader does what it does for its workers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.connect.signing import signature_headers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.errors import UnauthorizedError
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.sandbox_fixtures import PATIENCE_S, FileSource, wait_until


def _newest(bootstrap: str, key: bytes) -> Any:
    """The newest value under `key` in the config topic; None when there is none."""
    with KafkaTopicClient(ClientSettings((bootstrap,)), deadline=Deadline.after(PATIENCE_S)) as store:
        records: list[Record] = [record for record in store.read("connect-configs").records if record.key == key]
    return json.loads(records[-1].value or b"null") if records else None


@pytest.mark.live
def test_stop_and_a_signed_fence_write_the_task_count_record(stack: Any, file_source: FileSource) -> None:
    """The endpoint is Connect's own zombie fencing: after a stop it records a task count of 0 (seen on 4.3.1)."""
    file_source.put()
    file_source.wait_running()
    record_key = f"tasks-fencing-{file_source.name}".encode()
    bootstrap = stack.bootstrap_servers
    wait_until(lambda: _newest(bootstrap, record_key) == {"task-count": 1}, what="the record of the first round")
    file_source.stop_and_wait()
    session_key = base64.b64decode(_newest(bootstrap, b"session-key")["key"])
    worker = RestConnectWorker(file_source.url, deadline=Deadline.after(PATIENCE_S))
    with pytest.raises(UnauthorizedError, match="invalid signature"):
        worker.fence(file_source.name, signature_headers(b"another key"))
    worker.fence(file_source.name, signature_headers(session_key))
    assert _newest(bootstrap, record_key) == {"task-count": 0}
