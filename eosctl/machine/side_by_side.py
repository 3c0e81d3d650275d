"""Work in threads: the same request for many items at once, and items made ahead of their use.

Requests run at once so that their waiting times overlap. For work done ahead, one thread produces items that another is
about to use.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future


Item = TypeVar("Item")

_LOOK_EVERY_S = 0.1
_PATIENCE_S = 5.0


def ahead(items: Generator[Item, None, None], *, most: int = 2) -> Generator[Item, None, None]:
    """Yield the values of `items`, which a thread of its own produces, at most `most` of them ahead.

    It pays where the work waits or is done by libraries that let other threads run meanwhile. An error in the thread is
    raised here, and the generator is closed there when the caller stops reading.
    """
    making = _Making(items, most)
    thread = threading.Thread(target=making.run, name="ahead", daemon=True)
    thread.start()
    try:
        yield from making.made()
    finally:
        making.over.set()
        thread.join(_PATIENCE_S)  # one that waits for a silent broker is not waited for


class _End:
    """The end of the items, with the error, if there was one."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Making(Generic[Item]):
    def __init__(self, items: Generator[Item, None, None], most: int) -> None:
        self._items = items
        self._queue: queue.Queue[Item | _End] = queue.Queue(most)
        self.over = threading.Event()

    def run(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as exc:  # whatever it is, it is raised where the items are used
            error = exc
        finally:
            self._items.close()
        self._put(_End(error))

    def _put(self, item: Item | _End) -> bool:
        """Put an item into the queue and return True; return False if the reader stopped before there was room."""
        while not self.over.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=_LOOK_EVERY_S)
                return True
        return False

    def made(self) -> Iterator[Item]:
        while not isinstance(item := self._queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error


_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


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
    broker. A single item is asked about in this thread, all others in two threads: what Arrow keeps of the memory of an
    item is of use for the next one in the same thread alone.
    """
    from collections import deque
    from concurrent.futures import wait

    rest = iter(asked)
    first = list(islice(rest, 2))
    if len(first) == 1:
        yield ask(*first)
        return
    waiting = queue.SimpleQueue[tuple["Future[_Answer]", _Asked] | None]()
    for _thread in range(len(first)):
        threading.Thread(target=_answer_all, args=(ask, waiting), name="two at a time", daemon=True).start()
    begun = deque(_begun(waiting, each) for each in first)
    del first
    try:
        while begun:
            answer = begun.popleft().result()
            begun.extend(_begun(waiting, each) for each in islice(rest, 1))
            yield answer
    finally:
        waiting.put(None)
        waiting.put(None)
        wait(begun, _PATIENCE_S)


def _begun(waiting: queue.SimpleQueue[tuple[Future[_Answer], _Asked] | None], asked: _Asked) -> Future[_Answer]:
    from concurrent.futures import Future

    answer = Future[_Answer]()
    waiting.put((answer, asked))
    return answer


def _answer_all(
    ask: Callable[[_Asked], _Answer], waiting: queue.SimpleQueue[tuple[Future[_Answer], _Asked] | None]
) -> None:
    """Ask about each item that comes, up to None; nothing of one is held while the next one is waited for."""
    while _answered(ask, waiting.get()):
        pass


def _answered(ask: Callable[[_Asked], _Answer], item: tuple[Future[_Answer], _Asked] | None) -> bool:
    if item is None:
        return False
    answer, asked = item
    try:
        answer.set_result(ask(asked))
    except BaseException as exc:  # whatever it is, it is raised where the answer is used
        answer.set_exception(exc)
    return True
