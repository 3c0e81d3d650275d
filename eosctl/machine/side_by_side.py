"""Runs the same request for many items at once, so that their waiting times overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")

_PATIENCE_S = 5.0


def side_by_side(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked], *, most: int) -> list[_Answer]:
    """Call `ask` for each item, at most `most` at a time, and return the results in order.

    Raises the error of the first that fails. Those that have not begun by then are left out. A single item is asked
    about in this thread.
    """
    waiting = list(asked)
    if len(waiting) <= 1:
        return [ask(each) for each in waiting]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(most)
    try:
        return [future.result() for future in [pool.submit(ask, each) for each in waiting]]
    finally:
        pool.shutdown(cancel_futures=True)


def two_at_a_time(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked]) -> Iterator[_Answer]:
    """Yield the result of `ask` for each item in order, running two at a time.

    No more are taken from `asked` meanwhile. It pays where the work is done by libraries that let other threads run.
    Raises the error of the first that fails; the other one is waited for only briefly, as it may wait for a silent
    broker. A single item is asked about in this thread.
    """
    from collections import deque
    from concurrent.futures import wait

    rest = iter(asked)
    first = list(islice(rest, 2))
    if len(first) == 1:
        yield ask(*first)
        return
    begun = deque(_begun(ask, each) for each in first)
    try:
        while begun:
            answer = begun.popleft().result()
            begun.extend(_begun(ask, each) for each in islice(rest, 1))
            yield answer
    finally:
        wait(begun, _PATIENCE_S)


def _begun(ask: Callable[[_Asked], _Answer], asked: _Asked) -> Future[_Answer]:
    from concurrent.futures import Future
    from threading import Thread

    answer = Future[_Answer]()

    def run() -> None:
        try:
            answer.set_result(ask(asked))
        except BaseException as exc:  # whatever it is, it is raised where the answer is used
            answer.set_exception(exc)

    Thread(target=run, name="two at a time", daemon=True).start()
    return answer
