"""One contestant: reads a topic into the newest record per key, as every `eosctl offsets` command does."""

from __future__ import annotations

import sys

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient


def main(bootstrap: str, topic: str, isolation: str, expected: str) -> None:
    """Exits with 1 unless exactly `expected` records passed by."""
    with KafkaTopicClient(ClientSettings(bootstrap_servers=(bootstrap,)), deadline=Deadline.after(300)) as store:
        read = store.read(topic, isolation=isolation, newest_per_key=True)
    print(read.records_read, len(read.records))
    sys.exit(read.records_read != int(expected))


if __name__ == "__main__":
    main(*sys.argv[1:])
