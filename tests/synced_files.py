"""What would have survived a power cut, and from when on: `os.fsync` is watched, and does what it does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Synced:
    """One sync: the bytes of a file, or the names in a directory, and the moment."""

    inode: int
    path: Path
    content: bytes | frozenset[str]
    moment: object


@dataclass
class SyncedFiles:
    """Every sync in its order; `moment` tells what the test wants to know of the world at that time."""

    moment: Callable[[], object] = lambda: None
    seen: list[Synced] = field(default_factory=list)

    def note(self, descriptor: int) -> None:
        """What is synced now."""
        link = Path(f"/proc/self/fd/{descriptor}")
        content = frozenset(os.listdir(descriptor)) if link.is_dir() else link.read_bytes()
        self.seen.append(Synced(os.fstat(descriptor).st_ino, link.readlink(), content, self.moment()))

    def kept(self, path: Path) -> dict[bytes, object]:
        """Each content that `path` had on the disk, with the moment from which on: its directory must name it."""
        file, directory = path.stat().st_ino, path.parent.stat().st_ino
        named, content = False, None
        kept: dict[bytes, object] = {}
        for each in self.seen:
            if each.inode == directory and isinstance(each.content, frozenset):
                named = named or path.name in each.content
            elif each.inode == file and isinstance(each.content, bytes):
                content = each.content
            if named and content is not None:
                kept.setdefault(content, each.moment)
        return kept


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> SyncedFiles:
    """The syncs of this test."""
    files, fsync = SyncedFiles(), os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        files.note(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return files
