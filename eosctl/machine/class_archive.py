"""The classes that a JVM loads while it starts, kept for the next one (AppCDS): a good part of its start otherwise.

The JVM writes the archive at its end and checks what it is given: one that does not fit is ignored. So is every error
here: without an archive a JVM only starts slower. One archive per Java and set of jars, in a folder of the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from eosctl.machine.kept_file import KeptFile

QUIET = "-Xlog:disable"
"""Without it the JVM warns of an archive that does not fit, and of every class that it can't archive."""


class ClassArchive(Struct, frozen=True):
    """The archive `file` of the cache; where there is none yet, a JVM may write `draft` when it ends."""

    file: KeptFile
    draft: Path

    def kept(self) -> Path | None:
        """The archive, if it is there and whole: a JVM dies of one that breaks off (SIGBUS)."""
        return self.file.path()

    def use(self) -> list[str]:
        """The options of a JVM that uses the archive; none where there is none."""
        kept = self.kept()
        return [f"-XX:SharedArchiveFile={kept}", QUIET] if kept else []

    def record(self) -> list[str]:
        """The options of a JVM that makes the archive."""
        return [f"-XX:ArchiveClassesAtExit={self.draft}", QUIET]

    def keep(self) -> None:
        """Takes over what a JVM that has ended wrote, if it came to the end of it."""
        if _is_whole(self.draft):
            self.file.keep(self.draft)


def archive_name(java: Path, jars: Iterable[Path]) -> str:
    """What the archive for this Java and these jars is called; empty where one of them can't be read.

    A JVM ignores an archive that was made of jars with another size or time: both are part of the name.
    """
    try:
        facts = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in (java.resolve(), *jars)]
    except OSError:
        return ""
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _is_whole(draft: Path) -> bool:
    """Whether the JVM came to the end of writing: it writes the header last (JDK 17 and 25), and so its first bytes."""
    with suppress(OSError), draft.open("rb") as file:
        return any(file.read(4))
    return False
