"""Whether driver and executors mean the same folder is found out before anything is read."""

from __future__ import annotations

import errno
import os
import platform
from pathlib import Path, PosixPath
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.snapshots import by_reason, hosts_without, why_not_shared

pytestmark = pytest.mark.spark


class ElsewhereOnExecutors(PosixPath):
    """A path that means another folder once it has come to a task."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path, (f"{self}-of-the-executor",)


def test_a_shared_folder_is_seen_and_left_empty(spark: SparkSession, tmp_path: Path) -> None:
    assert hosts_without(spark.sparkContext, tmp_path / "new", tasks=2) == {}
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_of_the_same_name_is_not_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """The first stage found no files of the tasks, after it had read all of the source."""
    apart = hosts_without(spark.sparkContext, ElsewhereOnExecutors(tmp_path / "snapshots"), tasks=2)
    assert apart == {platform.node(): "is not the same folder"}


class Growing:
    """A cluster's context to which two executors come while the first tasks run, here in a local Spark."""

    master = "spark://a:7077"

    def __init__(self, context: SparkContext) -> None:
        self._context, self.looks = context, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - pyspark's name
        self.looks += 1
        return 1

    @property
    def _jsc(self) -> Any:
        return self

    def sc(self) -> Any:
        return self

    def getExecutorMemoryStatus(self) -> Any:  # noqa: N802 - Spark's name
        return self

    def size(self) -> int:
        return 3 if self.looks else 1


def test_executors_that_come_while_the_first_ones_look_are_looked_at_too(spark: SparkSession, tmp_path: Path) -> None:
    """It was over as soon as one executor had looked, for itself."""
    context = Growing(spark.sparkContext)
    MigrationJob(cast(SparkContext, context), None).require_shared(tmp_path / "new")
    assert context.looks == 2


class OfAnotherUser(PosixPath):
    """A file in a folder that is its owner's alone."""

    def read_text(self, *_words: Any, **_more: Any) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))


def test_executors_of_another_user(tmp_path: Path) -> None:
    """Spark's images run as user 185: eosctl said that the folder was another one."""
    told = why_not_shared(OfAnotherUser(tmp_path / "x"), "token")
    assert told == f"can't be read by user {os.geteuid()} (Permission denied)"


def test_every_host_is_named_with_its_reason() -> None:
    """Only the hosts of one of the reasons were named."""
    reasons = {"a": "is not the same folder", "b": "can't be read by user 185 (x)", "c": "is not the same folder"}
    assert by_reason(reasons) == "can't be read by user 185 (x) on b and is not the same folder on a, c"
