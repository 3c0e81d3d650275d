"""The memory of a process with many threads that runs for long."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # malloc.h of glibc


def share_one_heap() -> None:
    """Lets all threads allocate from one heap, where the C library is glibc; call it before there are threads.

    By default each thread gets a heap of its own, and what a large read has left in one is no use to the others: an
    exporter of 500 connectors held 225 MB so, and holds 130 MB with one.
    """
    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (OSError, AttributeError):
        return  # another C library, which does it in its own way
