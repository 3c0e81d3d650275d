"""The archive of the classes that Spark loads while it starts: half of the start-up without it."""

from __future__ import annotations

from pathlib import Path

import pyspark

from eosctl.class_archive import ClassArchive, class_archive


def spark_class_archive(folder: Path, *, java_home: Path | None, work_dir: Path) -> ClassArchive | None:
    """The archive in `folder` for this Java and these jars, drafts of it in `work_dir`; None where that is unknown."""
    if java_home is None:
        return None
    return class_archive(
        folder,
        f"spark-{pyspark.__version__}",
        java=java_home / "bin" / "java",
        jars=sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")),
        draft=work_dir / "classes.jsa",
    )
