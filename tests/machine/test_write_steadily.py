"""A large file is on its way to the disk while it is made, and is the same on a system that can't begin early."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.machine.files import write_steadily

MIB = 1 << 20


def blocks() -> Iterator[bytes]:
    """Forty MiB, and one line more, in blocks of which none looks like another."""
    for number in range(80):
        yield bytes([number]) * (MIB // 2)
    yield b"the last line\n"


def begun_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(first byte, size) of all that the disk is told to begin with, from now on; it must be in the file by then."""
    begun, begin = list[tuple[int, int]](), os.posix_fadvise

    def noted(descriptor: int, first: int, size: int, advice: int) -> None:
        assert first + size <= os.fstat(descriptor).st_size
        begun.append((first, size))
        begin(descriptor, first, size, advice)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    return begun


def test_the_disk_begins_with_what_is_there_each_byte_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begun_of(monkeypatch)
    with (tmp_path / "lines").open("wb") as file:
        write_steadily(file, blocks())
    assert begun == [(0, 16 * MIB), (16 * MIB, 16 * MIB)]
    assert (tmp_path / "lines").read_bytes() == b"".join(blocks())


def test_a_small_file_is_left_to_its_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begun_of(monkeypatch)
    with (tmp_path / "lines").open("wb") as file:
        write_steadily(file, [b"one\n", b"two\n"])
    assert begun == []
    assert (tmp_path / "lines").read_bytes() == b"one\ntwo\n"


def test_a_system_without_it_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fadvise")
    with (tmp_path / "lines").open("wb") as file:
        write_steadily(file, blocks())
    assert (tmp_path / "lines").read_bytes() == b"".join(blocks())


def test_a_file_system_that_refuses_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    with (tmp_path / "lines").open("wb") as file:
        write_steadily(file, blocks())
    assert (tmp_path / "lines").read_bytes() == b"".join(blocks())
