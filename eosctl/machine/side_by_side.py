"""The same question to many at once: what each waits for passes for all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def side_by_side(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked], *, most: int) -> list[_Answer]:
    """What `ask` says of each, in their order, at `most` so many at a time; raises what the first that fails raises.

    Those that were not begun then are left out. One alone is asked in this thread.
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
