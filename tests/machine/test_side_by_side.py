"""Two at a time: in order, no more than two taken, and nobody waits for one that hangs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from itertools import count

import pytest

from eosctl.machine import side_by_side
from eosctl.machine.side_by_side import two_at_a_time
from tests.fakes.clock import PLENTY_S


def test_two_are_asked_at_a_time_and_their_answers_come_in_order() -> None:
    met, taken = threading.Barrier(2), list[int]()

    def numbers() -> Iterator[int]:
        for number in range(6):
            taken.append(number)
            yield number

    def ask(number: int) -> tuple[int, int]:
        met.wait(PLENTY_S)  # for the other one
        return number, len(taken)

    answers = list(two_at_a_time(ask, numbers()))

    assert [number for number, _taken in answers] == list(range(6))
    assert all(count <= number + 3 for number, count in answers)


def test_one_alone_is_asked_in_this_thread_and_none_not_at_all() -> None:
    assert list(two_at_a_time(lambda _: threading.current_thread(), [1])) == [threading.current_thread()]
    assert not list(two_at_a_time(lambda _: threading.current_thread(), []))


def test_all_are_asked_in_the_same_two_threads_which_end() -> None:
    """Each item had a thread of its own, and Arrow asked the system anew for all the memory that it needed there."""
    threads = set(two_at_a_time(lambda _: threading.current_thread(), range(10)))

    assert len(threads) <= 2
    assert threading.current_thread() not in threads
    for thread in threads:
        thread.join(PLENTY_S)
        assert not thread.is_alive()


def test_no_item_or_answer_is_held_once_it_was_used() -> None:
    """The first two items were held to the end: tables of half a million rows each."""
    gone = dict[str, threading.Event]()

    class Held:
        def __init__(self, name: str) -> None:
            weakref.finalize(self, gone.setdefault(name, threading.Event()).set)

    numbers = count()
    answers = two_at_a_time(lambda _item: Held(f"answer {next(numbers)}"), (Held(f"item {n}") for n in range(8)))
    for _answer in range(5):
        next(answers)

    wanted = [f"{what} {number}" for what in ("item", "answer") for number in range(3)]
    assert [name for name in wanted if not gone[name].wait(PLENTY_S)] == []


def test_the_error_of_the_first_that_fails_is_raised_where_its_answer_is_used() -> None:
    def ask(number: int) -> int:
        if number:
            raise ValueError(str(number))
        return number

    answers = two_at_a_time(ask, range(5))

    assert next(answers) == 0
    with pytest.raises(ValueError, match="1"):
        next(answers)


def test_one_that_hangs_is_not_waited_for_when_the_other_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "_PATIENCE_S", 0.0)
    over, ended = threading.Event(), threading.Event()

    def ask(number: int) -> int:
        if not number:
            raise ValueError("the first")
        over.wait(PLENTY_S)
        ended.set()
        return number

    with pytest.raises(ValueError, match="the first"):
        list(two_at_a_time(ask, range(2)))
    assert not ended.is_set()
    over.set()
    assert ended.wait(PLENTY_S)
