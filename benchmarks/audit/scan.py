"""`python -m benchmarks.audit.scan SERVERS TOPIC [--record FILE]`: reads the headers of all batches of a topic."""

from __future__ import annotations

import sys
from pathlib import Path

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Window
from eosctl.deadline import Deadline
from eosctl.kafka.batches.log import NativeBatchLog
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.stream import Stream


class RecordingStream(Stream):
    """Keeps what it sends."""

    sent: list[bytes] = []  # noqa: RUF012 - of all of them

    def send(self, data: bytes) -> None:
        """As any."""
        self.sent.append(data)
        super().send(data)


def main(servers: str, topic: str, *record: str) -> None:
    """Prints what was seen; with --record writes the requests to FILE, one after the other."""
    settings = ClientSettings(tuple(servers.split(",")))
    connections = Connections(settings, open_stream=RecordingStream if record else Stream)
    with NativeBatchLog(settings, deadline=Deadline.after(60), connections=connections) as log:
        count = size = records = 0
        for batch in log.scan(log.plan([topic], Window())):
            count += 1
            size += batch.size_bytes
            records += batch.records
    print(f"{count:,} batches, {records:,} records, {size / 1e6:,.0f} MB, {size / max(count, 1):,.0f} bytes a batch")
    if record:
        Path(record[1]).write_bytes(b"".join(RecordingStream.sent))


if __name__ == "__main__":
    main(*sys.argv[1:])
