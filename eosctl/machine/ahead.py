"""Work done ahead: one thread produces items that another is about to use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

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
