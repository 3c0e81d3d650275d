"""What is made ahead comes in order, with its errors, and is made no more when nobody asks."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from eosctl.machine.side_by_side import ahead
from tests.fakes.clock import PLENTY_S


def test_items_come_in_order_and_the_error_behind_them() -> None:
    def numbers() -> Generator[int, None, None]:
        yield from range(5)
        raise ValueError("the sixth")

    items = ahead(numbers())
    assert [next(items) for _ in range(5)] == list(range(5))
    with pytest.raises(ValueError, match="the sixth"):
        next(items)


def test_some_are_made_before_they_are_asked_for_and_no_more() -> None:
    made, fourth = list[int](), threading.Event()

    def numbers() -> Generator[int, None, None]:
        for number in range(100):
            made.append(number)
            if number == 3:
                fourth.set()
            yield number

    items = ahead(numbers(), most=2)
    assert next(items) == 0
    assert fourth.wait(PLENTY_S), "two wait, and one more is made"
    assert made == [0, 1, 2, 3]
    assert list(items) == list(range(1, 100))


def test_who_stops_asking_ends_the_work() -> None:
    closed = threading.Event()

    def numbers() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    items = ahead(numbers())
    assert next(items) == 1
    items.close()
    assert closed.is_set()
    assert "ahead" not in {thread.name for thread in threading.enumerate()}
