"""Who answers on a node's port: the node, or somebody who took the port before it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Producer

from eosctl.sandbox.servers.launcher import broker_answers, worker_answers
from tests.fakes.clock import PLENTY_S
from tests.fakes.http_server import serving
from tests.sandbox_fixtures import wait_until


def test_a_broker_of_another_cluster_is_not_ours() -> None:
    """A stack was called ready because another one's broker answered where its own could not listen."""
    silent = logging.Logger("broker")
    silent.addHandler(logging.NullHandler())
    broker = Producer({"test.mock.num.brokers": 1}, logger=silent)  # runs as long as the producer is there
    metadata = broker.list_topics(timeout=PLENTY_S)
    address = f"127.0.0.1:{metadata.brokers[1].port}"
    ours = str(metadata.cluster_id)
    wait_until(lambda: broker_answers(address, {}, brokers=1, cluster_id=ours), what="our broker")
    wait_until(lambda: broker_answers(address, {}, brokers=1, cluster_id=""), what="any broker")
    assert not broker_answers(address, {}, brokers=1, cluster_id="another")
    assert not broker_answers(address, {}, brokers=2, cluster_id=ours)


@contextmanager
def _worker(status: int, message: str, root: object) -> Iterator[str]:
    """The URL of a worker that lists its connectors, says this of one that it does not have, and that of itself."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/connectors/")
            is_one = name != self.path
            self.send_response(status if is_one else 200)
            self.end_headers()
            answer = {"/": root, "/connectors": []}.get(self.path, {"message": message.format(name)})
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_words: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


OURS = {"version": "4.3.1", "kafka_cluster_id": "ours"}
UNKNOWN = "Connector {} not found"


@pytest.mark.parametrize(
    ("status", "message", "root", "cluster_id", "ready"),
    [
        (404, UNKNOWN, OURS, "ours", True),
        (404, UNKNOWN, OURS, "", True),
        (404, UNKNOWN, OURS, "other", False),
        (404, UNKNOWN, ["no worker"], "ours", False),
        (404, "HTTP 404 Not Found", OURS, "ours", False),  # before its REST resources are there
        (409, "Cannot complete request because of a conflicting operation", OURS, "ours", False),  # rebalances
        (500, "Request timed out", OURS, "ours", False),  # has not joined
        (401, "User cannot access the resource.", OURS, "ours", True),  # wants a password
    ],
)
def test_a_worker_is_ready_as_a_member_of_its_group_on_our_cluster(
    status: int, message: str, root: object, cluster_id: str, ready: bool
) -> None:
    """It lists connectors before it has joined: `workers list` right after `sandbox up` found no group."""
    with _worker(status, message, root) as url:
        if ready:
            wait_until(lambda: worker_answers(url, {}, cluster_id=cluster_id), what="a worker that is ready")
        assert ready or not worker_answers(url, {}, cluster_id=cluster_id)


def test_nobody_answers(closed_port: int) -> None:
    assert not broker_answers(f"127.0.0.1:{closed_port}", {}, brokers=1, cluster_id="")
    assert not worker_answers(f"http://127.0.0.1:{closed_port}", {}, cluster_id="")
