"""Asks brokers and workers whether they are ready, and explains why one is not: no log decides it."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError
from eosctl.foreign import Lines
from eosctl.sandbox.login import SandboxLogin
from eosctl.sandbox.state import Node

_POLL_S = 0.1
_SEARCHED_LINES = 400
_NO_CONNECTOR = "eosctl-asks-whether-this-worker-is-up"
_UNKNOWN = f"Connector {_NO_CONNECTOR} not found".encode()
_PORT_TAKEN = "Address already in use"


class PortTakenError(EosctlError):
    """A node ended because somebody else had bound one of its ports."""


def _loopback() -> urllib.request.OpenerDirector:
    """Make an opener that ignores $http_proxy and accepts any certificate: it only asks whether our process answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


_direct = _loopback()


def wait_ready(
    nodes: Sequence[Node],
    *,
    watched: Sequence[Node],
    brokers: int,
    cluster_id: str,
    login: SandboxLogin,
    deadline: Deadline,
) -> None:
    """Wait until every node answers; brokers must see `brokers` of their kind.

    A node of another cluster than `cluster_id` is somebody else's on our port. It is empty if it is unknown. Raises
    EosctlError with the end of its log as soon as one of `nodes` or `watched` has ended (PortTakenError if that was the
    cause), and DeadlineError with the same when the time is up.
    """
    waiting = list(nodes)
    for _ in deadline.rounds(_POLL_S):
        ended = next((node for node in (*nodes, *watched) if not node.process.alive()), None)
        if ended is not None:
            is_port = any(_PORT_TAKEN in line for line in log_tail(Path(ended.log), _SEARCHED_LINES))
            error = PortTakenError if is_port else EosctlError
            raise error(Lines.of(f"{ended.name} ended:", *_explanation(ended)), hint=f"Its log is {ended.log}.")
        waiting = [node for node in waiting if not answers(node, login, brokers=brokers, cluster_id=cluster_id)]
        if not waiting:
            return
    late = waiting[0]
    raise DeadlineError(
        Lines.of(f"{late.name} did not answer within {deadline.timeout_s:g} s:", *_explanation(late)),
        hint=f"Its log is {late.log}. A slow machine may need a longer --timeout.",
    )


def answers(node: Node, login: SandboxLogin, *, brokers: int = 1, cluster_id: str = "") -> bool:
    """Decide whether a broker, which must see `brokers` of its kind, or a worker answers now, from this cluster."""
    if node.kind == "broker":
        return broker_answers(node.address, login.librdkafka_settings(), brokers=brokers, cluster_id=cluster_id)
    return worker_answers(node.address, login.rest_headers(), cluster_id=cluster_id)


def broker_answers(address: str, login: Mapping[str, str], *, brokers: int, cluster_id: str) -> bool:
    """Decide whether the broker at `host:port` answers a metadata request with a controller and `brokers` brokers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    host, port = address.rsplit(":", 1)
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((host, int(port))):
            return False
    silent = logging.Logger("sandbox")  # not registered: a starting broker is no news
    silent.addHandler(logging.NullHandler())
    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False, **login}, logger=silent)
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    is_ours = cluster_id in ("", metadata.cluster_id)
    return is_ours and len(metadata.brokers) >= brokers and metadata.controller_id >= 0


def worker_answers(url: str, headers: Mapping[str, str], *, cluster_id: str) -> bool:
    """Decide whether the worker denies a connector of a made-up name, as only a member of its group does.

    It lists connectors, none, some time before that. One that wants another password (401) answers, and no more can be
    asked.
    """
    try:
        _get(f"{url}/connectors/{_NO_CONNECTOR}", headers)
        root = json.loads(_get(url, headers)) if cluster_id else {}
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code == HTTPStatus.UNAUTHORIZED
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return isinstance(root, dict) and root.get("kafka_cluster_id", "") == cluster_id


def _get(url: str, headers: Mapping[str, str]) -> bytes:
    """Return the answer's body, also that of "there is no such connector", which differs from a path not yet served."""
    try:
        request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - a node of ours
        with _direct.open(request, timeout=5) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as exc:
        body = exc.read()
        if _UNKNOWN not in body:
            raise
        exc.close()
        return body


def log_tail(path: Path, count: int) -> list[str]:
    """Return the last `count` lines of a log file; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _explanation(node: Node) -> list[str]:
    """Return the last lines of the node's log without stack frames, and the missing class, if that was the cause."""
    lines = [line for line in log_tail(Path(node.log), _SEARCHED_LINES) if not line.startswith("\tat ")]
    missing = next((line for line in lines if "NoClassDefFoundError" in line or "ClassNotFound" in line), None)
    last = lines[-6:]
    return [f"  {line}" for line in ([*last, missing] if missing and missing not in last else last)]
