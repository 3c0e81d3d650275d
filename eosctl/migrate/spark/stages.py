"""The watch over the Spark jobs of a stage: progress, Ctrl-C, and giving up if no executor runs them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException

from eosctl.errors import DeadlineError
from eosctl.migrate.spark.session import spark_error
from eosctl.migrate.spark.snapshots import RecordCounts

EXECUTOR_PATIENCE_S = 120.0
"""How long a stage waits for the first executor: a cluster may have to start a machine for it, or never start one."""

_LOOK_EVERY_S = 0.5
_NO_WORKERS = (
    "Has the cluster workers, and cores and memory to spare? `--conf spark.cores.max=N` and `--conf "
    "spark.executor.memory=512m` ask for less."
)
_NO_PODS = (
    "`kubectl describe pod --selector spark-role=executor` says what its pods wait for, and spark.log beside the "
    "snapshot folder what the API server refused. Pods must reach spark.driver.host."
)

OnProgress = Callable[[str, int | None, int | None, str], None]
"""Called with the first fields of an `Event`: the activity, how many are done, of how many, and the unit."""


@contextmanager
def watched_stage(
    context: SparkContext,
    doing: str,
    counts: RecordCounts | None,
    *,
    on_progress: OnProgress,
    executor_patience_s: float = EXECUTOR_PATIENCE_S,
) -> Iterator[None]:
    """Name the jobs of the block, report their progress, cancel them on Ctrl-C, and translate Spark's errors.

    Raises DeadlineError if no executor comes within `executor_patience_s`.
    """
    watch = _Watch(context, f"eosctl {doing}", doing, counts, on_progress, executor_patience_s)
    context.setJobGroup(watch.group, doing, interruptOnCancel=True)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        with counts or nullcontext():
            yield
    except (KeyboardInterrupt, Py4JError, PySparkException) as exc:
        if watch.gave_up.is_set():
            raise no_executor(doing, str(context.master), executor_patience_s) from exc
        if not _was_interrupted(exc):
            raise spark_error(exc, doing) from exc
        with suppress(Py4JError):  # the call that was cut off may have taken the connection along
            context.cancelJobGroup(watch.group)
        raise KeyboardInterrupt from exc
    finally:
        watch.over.set()
        thread.join()


@dataclass(slots=True)
class _Watch:
    """A thread that looks at the jobs of a `group` until they are `over`."""

    context: SparkContext
    group: str
    doing: str
    counts: RecordCounts | None
    on_progress: OnProgress
    patience_s: float
    over: threading.Event = field(default_factory=threading.Event)
    gave_up: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Report the progress of a stage, in records if they are counted, else in tasks, until it is over.

        Spark plans the next tasks when it has seen the last ones: how many there will be is not known before the end.
        """
        done, total, unit = 0, self.counts.total if self.counts else None, "records" if self.counts else "tasks"
        give_up_s: float | None = None if self._has_executors() else time.monotonic() + self.patience_s
        while True:
            if done != total:  # after the last record there is more to do
                self.on_progress(self.doing, done, total, unit)
            if self.over.wait(_LOOK_EVERY_S):
                break
            with suppress(Py4JError):  # the stage itself reports what is wrong with the JVM
                done, known = (self.counts.done(), 0) if self.counts else self._tasks()
                unit = unit if self.counts else f"of {known} tasks so far"
                if give_up_s is not None:
                    give_up_s = self._still_alone(give_up_s)
        self.on_progress(self.doing, done, done, unit)

    def _still_alone(self, give_up_s: float) -> float | None:
        """Return when to give up, None with executors; past that time cancel the jobs: Spark would wait for ever."""
        if self._has_executors():
            return None
        if time.monotonic() > give_up_s:
            self.gave_up.set()
            self.context.cancelJobGroup(self.group)
        return give_up_s

    def _has_executors(self) -> bool:
        """Tell whether there is one; a local Spark needs none."""
        if str(self.context.master).startswith("local"):
            return True
        with suppress(Py4JError):
            return executors_of(self.context) > 0
        return True

    def _tasks(self) -> tuple[int, int]:
        """Count the tasks of the group's jobs that are done, and those that Spark knows of."""
        tracker = self.context.statusTracker()
        infos = [info for job in tracker.getJobIdsForGroup(self.group) if (info := tracker.getJobInfo(job)) is not None]
        stages = [tracker.getStageInfo(stage) for info in infos for stage in info.stageIds]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def executors_of(context: SparkContext) -> int:
    """Count the executors that have come to a cluster's Spark; the driver is listed among them."""
    java: Any = context._jsc
    return int(java.sc().getExecutorMemoryStatus().size()) - 1


def no_executor(doing: str, master: str, patience_s: float) -> DeadlineError:
    """Return the error for a stage that was given up."""
    return DeadlineError(
        f"{doing}: no executor came to Spark master {master} within {patience_s:g} s",
        hint=_NO_PODS if master.startswith("k8s://") else _NO_WORKERS,
    )


def _was_interrupted(error: BaseException | None) -> bool:
    """Tell whether an error is Ctrl-C, or one that pyspark met while it cleaned up after Ctrl-C."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _was_interrupted(error.__context__))
