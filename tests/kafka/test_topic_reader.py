"""A read of a topic whose time begins anew: a consumer whose every answer takes its time stands in for librdkafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError
from eosctl.kafka.topics.reader import TopicReader
from tests.fakes.clock import FakeTime

TIMEOUT_S, ANSWER_S, RECORDS = 30.0, 20.0, 5


class SlowMessage:
    """A record of partition 0 of topic t."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def key(self) -> bytes:
        return b"k"

    value = key

    def headers(self) -> None:
        return None


class SlowConsumer:
    """Gives one record each time, after ANSWER_S; behind `silent_from` none."""

    def __init__(self, time: FakeTime, silent_from: int) -> None:
        self._time, self._silent_from, self._next = time, silent_from, 0

    def assign(self, _partitions: object) -> None:
        pass

    def pause(self, _partitions: object) -> None:
        pass

    def consume(self, _most: int, *, timeout: float) -> Sequence[SlowMessage]:
        self._time.now_s += max(ANSWER_S, timeout)
        if self._next >= self._silent_from:
            return []
        self._next += 1
        return [SlowMessage(self._next - 1)]


def read(*, renews: bool, silent_from: int = RECORDS) -> list[int]:
    time = FakeTime()

    class Reader(TopicReader):
        @contextmanager
        def _consumer(self) -> Iterator[Any]:
            yield SlowConsumer(time, silent_from)

    reader = Reader(
        ClientSettings(("memory:9092",)), "t", [Bounds(0, 0, RECORDS, RECORDS)],
        isolation="read_committed", deadline=Deadline.after(TIMEOUT_S, time.clock()), on_event=lambda _event: None,
        renews=renews,
    )  # fmt: skip
    return [record.offset for record in reader.read_all()]


def test_a_read_that_gets_on_may_take_longer_than_the_timeout() -> None:
    """An audit ended in the middle of an offsets topic that takes more than a minute."""
    assert read(renews=True) == list(range(RECORDS))


@pytest.mark.parametrize(("renews", "silent_from"), [(False, RECORDS), (True, 3)])
def test_a_read_ends_with_its_time(renews: bool, silent_from: int) -> None:
    with pytest.raises(DeadlineError, match="partition 0 is at offset"):
        read(renews=renews, silent_from=silent_from)
