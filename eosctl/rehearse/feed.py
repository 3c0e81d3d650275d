"""The source of a rehearsal without a config: a growing file of numbered lines."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

CONNECTOR = "lines"
CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
TOPIC = "rehearsed-lines"
FIELD = "n"
_TICK_S = 0.1
_MOST_LINES = 20


class GrowingFile:
    """A file that gets some lines ten times a second, from `start` to `stop`: `{"n": 0}`, `{"n": 1}` and so on."""

    def __init__(self, path: Path, *, seed: int) -> None:
        self.path, self._chosen = path, random.Random(seed)  # noqa: S311 - no secret
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._grow, daemon=True)
        self.lines = 0

    def start(self) -> None:
        """Make the file and begin to write."""
        self.path.touch()
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _grow(self) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            while not self._ended.wait(_TICK_S):
                count = self._chosen.randint(1, _MOST_LINES)
                numbers = range(self.lines, self.lines + count)
                file.writelines(json.dumps({FIELD: number}) + "\n" for number in numbers)
                file.flush()
                self.lines += count


def built_in_config(path: Path) -> dict[str, str]:
    """Return the config of the connector that reads the file; its transactions are long, so that faults hit them."""
    text = "org.apache.kafka.connect.storage.StringConverter"
    return {
        "connector.class": CLASS,
        "tasks.max": "1",
        "file": str(path),
        "topic": TOPIC,
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "500",
        "key.converter": text,
        "value.converter": text,
    }
