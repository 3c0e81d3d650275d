"""Run eosctl in this process and print on stderr where it waited: sleeps, requests to brokers and workers, topics.

`python -m benchmarks.waits ARGUMENTS…`. The seconds of a wait are its own, without those of another wait inside it;
requests that threads make side by side count each for itself.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

BEGAN_S = time.perf_counter()
_spent_s: dict[str, list[float]] = defaultdict(list)
_inside = threading.local()


def watch(owner: Any, real: Callable[..., Any], name_of: Callable[..., str]) -> None:
    """Replace a function by one that notes its own seconds under the name that `name_of` makes of its arguments."""

    @functools.wraps(real)
    def watched(*args: Any, **options: Any) -> Any:
        outer_s = getattr(_inside, "spent_s", 0.0)
        _inside.spent_s, began_s = 0.0, time.perf_counter()
        try:
            return real(*args, **options)
        finally:
            took_s = time.perf_counter() - began_s
            _spent_s[name_of(*args, **options)].append(took_s - _inside.spent_s)
            _inside.spent_s = outer_s + took_s

    setattr(owner, real.__name__, watched)


def watch_all() -> None:
    """Watch every place where a command waits for something else."""
    watch(time, time.sleep, lambda _s: f"sleep in {_caller()}")  # before the clock takes it
    from eosctl.connect.sender import WorkerSender
    from eosctl.kafka.admin import KafkaTopicAdmin
    from eosctl.kafka.native.admin_connection import AdminConnection
    from eosctl.kafka.native.connection import Connection
    from eosctl.kafka.topics.store import KafkaTopicClient
    from eosctl.kafka.topics.stream import Stream
    from eosctl.sandbox.stack import Stack

    watch(Stack, Stack.stop_nodes, lambda *_args: "sandbox stop")
    watch(Stack, Stack.start_node, lambda *_args, **_options: "sandbox start")
    watch(Connection, Connection._exchange, lambda _self, api, *_rest: f"broker {api.name}")
    watch(
        Connection,
        Connection.call_together,
        lambda _self, requests: f"broker {_listed(api.name for api, _ in requests)}",
    )
    watch(Stream, Stream.receive_frames, lambda _self: "broker fence")
    watch(Connection, Connection.open, lambda *_args, **_options: "broker connect")
    watch(AdminConnection, AdminConnection.wait, lambda _self, _futures, doing: f"librdkafka {doing}")
    watch(AdminConnection, AdminConnection.client, lambda _self: "librdkafka connect")
    watch(WorkerSender, WorkerSender.exchange, lambda _self, method, target, **_body: f"worker {method} {target[:60]}")
    watch(KafkaTopicClient, KafkaTopicClient.read, lambda _self, topic, **_options: f"topic read {topic}")
    watch(KafkaTopicClient, KafkaTopicClient.write, lambda *_args, **_options: "topic write")
    watch(KafkaTopicAdmin, KafkaTopicAdmin.describe, lambda *_args, **_options: "topic describe")


def _listed(names: Iterable[str]) -> str:
    """Return names, each with how often it is there."""
    return ", ".join(f"{count} x {name}" for name, count in Counter(names).items())


def _caller() -> str:
    """Return the line that waits, past the clock and the deadline."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_code.co_filename.endswith("deadline.py"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('eosctl/')[2]}:{frame.f_lineno}"


def main() -> None:
    """Run the command line; print the table even if it fails."""
    watch_all()
    from eosctl.__main__ import main as run

    try:
        run()
    finally:
        print(f"{time.perf_counter() - BEGAN_S:8.2f} s, CPU {time.process_time():.2f} s", file=sys.stderr)
        for name, spent_s in sorted(_spent_s.items(), key=lambda each: -sum(each[1])):
            print(f"{sum(spent_s):8.2f} s {len(spent_s):5} x {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
