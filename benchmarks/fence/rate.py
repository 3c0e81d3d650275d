"""The rate of `fence` inside the process, beside a client that only sends and counts.

The other client has its frames encoded beforehand, looks into no answer, and uses as many connections: what the broker
can do at most. Seen ids, one broker, in turn. Goal: at least half of its rate (median).
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.deadline import Deadline
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.kafka.transactions.fencing import CONNECTIONS_PER_COORDINATOR, WINDOW
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from eosctl.wire.transaction_messages import fence_encoder

_VERSION = 5
_TIMEOUT_MS = 30_000


def main() -> None:
    """Prints both rates and the ratio, run by run."""
    count, runs = 20_000, int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        stack = Stack.up(StackSpec(groups=()), Path(name) / "stack", name="benchmark", environ=os.environ)
        try:
            ids = [TransactionalId(f"rate-{uuid.uuid4().hex[:6]}-{number}") for number in range(count)]
            for _ in range(2):
                _eosctl(stack.bootstrap_servers, ids)
            ratios = []
            for _ in range(runs):
                ours, limit = _eosctl(stack.bootstrap_servers, ids), _flood(stack.bootstrap_servers, ids)
                ratios.append(ours / limit)
                print(f"eosctl {ours:,.0f} ids/s, saturating client {limit:,.0f} ids/s, ratio {ours / limit:.2f}")
            print(f"median ratio {statistics.median(ratios):.2f}")
        finally:
            stack.down()


def _eosctl(bootstrap: str, ids: list[TransactionalId]) -> float:
    settings = ClientSettings((bootstrap,))
    with NativeTransactionAdmin(settings, deadline=Deadline.after(300)) as admin:
        admin.cluster_id()
        started_s = time.perf_counter()
        answers = list(admin.fence(ids, transaction_timeout_ms=_TIMEOUT_MS))
        elapsed_s = time.perf_counter() - started_s
    assert len(answers) == len(ids)
    assert all(answer.fault is None for answer in answers)
    return len(ids) / elapsed_s


def _flood(bootstrap: str, ids: list[TransactionalId]) -> float:
    encode = fence_encoder(version=_VERSION, client_id="flood", transaction_timeout_ms=_TIMEOUT_MS)
    frames = [encode(transactional_id, number) for number, transactional_id in enumerate(ids)]
    lanes = [frames[lane::CONNECTIONS_PER_COORDINATOR] for lane in range(CONNECTIONS_PER_COORDINATOR)]
    host, port = bootstrap.rsplit(":", 1)
    threads = [threading.Thread(target=_pump, args=(host, int(port), lane)) for lane in lanes]
    started_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(ids) / (time.perf_counter() - started_s)


def _pump(host: str, port: int, frames: list[bytes]) -> None:
    """Sends all frames with WINDOW of them in flight; answers are cut into frames and thrown away."""
    with socket.create_connection((host, port)) as connection, connection.makefile("rb", 1 << 16) as answers:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(frames), WINDOW):
            window = frames[start : start + WINDOW]
            connection.sendall(b"".join(window))
            for _ in window:
                (size,) = struct.unpack(">i", answers.read(4))
                answers.read(size)


if __name__ == "__main__":
    main()
