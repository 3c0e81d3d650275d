"""The archive of the classes that Spark loads to start and to migrate: it halves the start-up time."""

from __future__ import annotations

from pathlib import Path

import pyspark

from eosctl.machine.class_archive import ClassArchive, archive_name
from eosctl.machine.kept_file import KeptFile


def spark_class_archive(folder: Path, *, java_home: Path | None, work_dir: Path) -> ClassArchive | None:
    """Return the archive in `folder` for this Java and these jars; None if Java is unknown.

    Drafts of it are in `work_dir`.
    """
    if java_home is None:
        return None
    name = archive_name(java_home / "bin" / "java", sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")))
    if not name:
        return None
    return ClassArchive(
        KeptFile(folder, f"migration-spark-{pyspark.__version__}-{name}", ".jsa"), work_dir / "classes.jsa"
    )
