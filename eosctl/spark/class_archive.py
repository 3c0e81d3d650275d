"""The classes that Spark loads while it starts, kept for the next run (AppCDS): half of the start-up otherwise.

The JVM writes the archive at its end and checks what it is given: one that does not fit is ignored. So is every error
here: without an archive Spark only starts slower. One archive per Java and set of jars, in a folder of the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

QUIET = "-Xlog:disable"
"""Without it the JVM warns of an archive that does not fit, and of every class that it can't archive."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of this `name` in `folder`; where there is none yet, the JVM writes `draft` when it ends."""

    folder: Path
    name: str
    draft: Path

    def kept(self) -> Path | None:
        """The archive, if it is there and whole: a JVM dies of one that breaks off, so its size is part of its name."""
        for path in self.folder.glob(f"{self.name}-*.jsa"):
            with suppress(OSError):
                if path.stem == f"{self.name}-{path.stat().st_size}":
                    return path
        return None

    def java_options(self) -> list[str]:
        """What the JVM is started with: use the archive, or make it."""
        kept = self.kept()
        if kept is not None:
            return [f'"-XX:SharedArchiveFile={kept}"', QUIET]
        return [f'"-XX:ArchiveClassesAtExit={self.draft}"', QUIET]

    def keep(self) -> None:
        """Takes over what a JVM that has ended wrote; whole or not at all, and without a word when it can't."""
        if self.kept() is not None or not self.draft.is_file():
            return
        copy = self.folder / f"{self.name}.{os.getpid()}.new"
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                with self.draft.open("rb") as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                    target.flush()
                    os.fsync(target.fileno())
                copy.replace(self.folder / f"{self.name}-{self.draft.stat().st_size}.jsa")
            finally:
                copy.unlink(missing_ok=True)


def class_archive(folder: Path, *, java_home: Path | None, work_dir: Path) -> ClassArchive | None:
    """The archive in `folder` for this Java and these jars, drafts of it in `work_dir`; None where that is unknown."""
    if java_home is None:
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    try:
        facts = [str((java_home / "bin" / "java").resolve()), str(jars), pyspark.__version__]
        facts += [str((java_home / "bin" / "java").stat().st_mtime_ns)]
        facts += sorted(f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars.iterdir())
    except OSError:
        return None
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return ClassArchive(folder, f"spark-{name}", work_dir / "classes.jsa")
