"""Files that the cache keeps, among them the classes that a JVM loads at its start (AppCDS).

A kept file is made once, and is never a reason for a failure.

Loading the classes is a good part of a JVM's start, so they are kept for the next one. The JVM writes the archive when
it ends and checks the one it is given: one that does not fit is ignored. So is every error here: without an archive a
JVM only starts slower. There is one archive per Java and set of jars, in a folder of the cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from eosctl.machine.files import open_own, own_folder, write_whole


class KeptFile(Struct, frozen=True):
    """The file of this `name` in `folder`. Its size is part of its file name, so that a truncated file is ignored.

    A file that others could have made or can change is ignored too: a JVM runs its contents.
    """

    folder: Path
    name: str
    suffix: str

    def path(self) -> Path | None:
        """Return the path of the file; None if it does not exist yet."""
        for path in self.folder.glob(f"{self.name}-*{self.suffix}"):
            with suppress(OSError):
                own_folder(self.folder)
                with open(open_own(path), "rb") as file:
                    if path.stem == f"{self.name}-{os.fstat(file.fileno()).st_size}":
                        return path
        return None

    def keep(self, draft: Path) -> None:
        """Copy `draft` into the cache unless a file is there already.

        It is copied completely or not at all; a failure is silent.
        """
        if self.path() is not None:
            return
        with suppress(OSError):
            import shutil  # its codecs are only needed to make a file

            path = own_folder(self.folder) / f"{self.name}-{draft.stat().st_size}{self.suffix}"
            with draft.open("rb") as source:
                write_whole(path, lambda target: shutil.copyfileobj(source, target, 1 << 20))


QUIET = "-Xlog:disable"
"""Suppresses the JVM's warnings about an archive that does not fit, and about classes that it can't archive."""


class ClassArchive(Struct, frozen=True):
    """The archive `file` of the cache; if there is none yet, a JVM may write `draft` when it ends."""

    file: KeptFile
    draft: Path

    def kept(self) -> Path | None:
        """Return the archive if it exists and is complete: a truncated one crashes the JVM (SIGBUS)."""
        return self.file.path()

    def use(self) -> list[str]:
        """Return the options of a JVM that uses the archive; none where there is none."""
        kept = self.kept()
        return [f"-XX:SharedArchiveFile={kept}", QUIET] if kept else []

    def record(self) -> list[str]:
        """Return the options of a JVM that makes the archive."""
        return [f"-XX:ArchiveClassesAtExit={self.draft}", QUIET]

    def keep(self) -> None:
        """Move the draft of a JVM that has ended into the cache if the draft is complete."""
        if _is_whole(self.draft):
            self.file.keep(self.draft)


def archive_name(java: Path, jars: Iterable[Path]) -> str:
    """Return the name of the archive for this Java and these jars; empty where one of them can't be read.

    A JVM ignores an archive that was made of jars with another size or time: both are part of the name.
    """
    try:
        facts = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in (java.resolve(), *jars)]
    except OSError:
        return ""
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _is_whole(draft: Path) -> bool:
    """Return whether the JVM finished writing: it writes the header, and so its first bytes, last (JDK 17 and 25)."""
    with suppress(OSError), draft.open("rb") as file:
        return any(file.read(4))
    return False
