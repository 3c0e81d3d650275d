"""The memory of a long-running process with many threads."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # malloc.h of glibc


def share_one_heap() -> None:
    """Let all threads allocate from one heap, where the C library is glibc; call it before there are threads.

    By default each thread gets a heap of its own, and the memory that a large read has left in one is of no use to the
    others.
    """
    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (OSError, AttributeError):
        return  # another C library, which does it in its own way


def give_back_memory() -> None:
    """Return free memory within the heap to the operating system, where the C library is glibc."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return
