"""The archive of Spark's classes: made once, used then, and never the reason why anything fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.migrate.spark.session import SessionSettings, session_conf, spark_class_archive


@pytest.fixture
def java_home(tmp_path: Path) -> Path:
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("17")
    return java.parent.parent


def settings(folder: Path, java_home: Path | None, **conf: str) -> SessionSettings:
    (folder / "work").mkdir(exist_ok=True)
    return SessionSettings(folder / "work", folder / "log", java_home=java_home, cache=folder / "cache", conf=conf)


def options(given: SessionSettings) -> str:
    return session_conf(given)["spark.driver.extraJavaOptions"]


def test_made_once_and_used_then(tmp_path: Path, java_home: Path) -> None:
    first = settings(tmp_path, java_home)
    archive = first.class_archive()
    assert archive is not None
    assert f"-XX:ArchiveClassesAtExit={archive.draft}" in options(first)
    archive.draft.write_text("classes")  # as the JVM does at its end
    archive.keep()
    assert f"-XX:SharedArchiveFile={archive.kept()}" in options(first)
    assert [path.read_text() for path in (tmp_path / "cache").iterdir()] == ["classes"]

    archive.draft.write_text("others")
    archive.keep()
    assert [path.read_text() for path in (tmp_path / "cache").iterdir()] == ["classes"]


def test_one_that_breaks_off_is_not_used(tmp_path: Path, java_home: Path) -> None:
    """The JVM crashed (SIGBUS) when it was given half an archive."""
    given = settings(tmp_path, java_home)
    archive = given.class_archive()
    assert archive is not None
    archive.draft.write_text("classes")
    archive.keep()
    kept = archive.kept()
    assert kept is not None
    kept.write_text("cla")
    assert archive.kept() is None
    assert "ArchiveClassesAtExit" in options(given)
    archive.keep()
    assert archive.kept() == kept


def test_each_java_has_its_own(tmp_path: Path, java_home: Path) -> None:
    before = spark_class_archive(tmp_path, java_home=java_home, work_dir=tmp_path)
    (java_home / "bin" / "java").unlink()
    (java_home / "bin" / "java").symlink_to("/bin/sh")
    after = spark_class_archive(tmp_path, java_home=java_home, work_dir=tmp_path)
    assert before is not None
    assert after is not None
    assert before.file.name != after.file.name


def test_one_that_the_jvm_was_killed_over_is_not_kept(tmp_path: Path, java_home: Path) -> None:
    """Half an archive was taken over as whole; the JVM writes the header last, over the hole at the beginning."""
    archive = settings(tmp_path, java_home).class_archive()
    assert archive is not None
    archive.draft.write_bytes(bytes(4096) + b"classes")
    archive.keep()
    assert archive.kept() is None


def test_no_rehearsal_on_a_cluster(tmp_path: Path, java_home: Path) -> None:
    """Its executors were asked for files in a folder of this machine, and left others in theirs."""
    assert settings(tmp_path, java_home).lacks_classes()
    assert not settings(tmp_path, java_home, **{"spark.master": "k8s://https://host:6443"}).lacks_classes()
    archive = settings(tmp_path, java_home).class_archive()
    assert archive is not None
    archive.draft.write_text("classes")
    archive.keep()
    assert not settings(tmp_path, java_home).lacks_classes()


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.extraClassPath"])
def test_a_user_who_decides_what_is_loaded(name: str, tmp_path: Path, java_home: Path) -> None:
    assert settings(tmp_path, java_home, **{name: "-Dx=y"}).class_archive() is None


def test_no_java_that_we_know(tmp_path: Path) -> None:
    assert settings(tmp_path, None).class_archive() is None
    assert settings(tmp_path, tmp_path / "nowhere").class_archive() is None


def test_a_cache_that_takes_no_file(tmp_path: Path, java_home: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    archive = settings(tmp_path, java_home).class_archive()
    assert archive is not None
    archive.draft.write_text("classes")
    archive.keep()
    assert archive.kept() is None
