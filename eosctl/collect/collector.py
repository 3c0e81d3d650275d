"""The collector: a thread per source, which looks, keeps the facts, and rests. Readers never wait for any of them.

A source that hangs holds up only itself: its facts grow old, and its error reports that. Nothing is written to Kafka.
"""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.collect.followed import FollowedConfigs, following
from eosctl.collect.overview import Collected, FactSource, Overview
from eosctl.deadline import Deadline, Event, ignore_events, unfailing
from eosctl.errors import EosctlError
from eosctl.machine.memory import give_back_memory

_END_PATIENCE_S = 2.0


class Collector:
    """Looks at `sources` every `interval_s`, or the multiple of it that each source asks for.

    `overview` may be called from any thread at any time. A change of a source's health is one event of the App.
    """

    def __init__(self, app: App, sources: Sequence[FactSource], *, interval_s: float = 30.0) -> None:
        self._app, self.sources = replace(app, on_event=unfailing(app.on_event)), tuple(sources)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._tidied_s = -math.inf
        self._started_ms, self._version = app.clock.now_ms(), 0
        self._configs = {each.name: FollowedConfigs(app.clock) for each in self.sources}
        self._collected = {
            each.name: Collected(each.name, interval_s * each.every, each.deadline_s, last=each.last)
            for each in self.sources
        }

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start to look at every source; return at once."""
        for source in self.sources:
            thread = threading.Thread(target=self._run, args=(source,), name=f"collect-{source.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Start no further looks and wait briefly for running ones; the process may end without them."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
        patience = Deadline.after(_END_PATIENCE_S, self._app.clock)
        for thread in self._threads:
            thread.join(patience.remaining_s())

    def overview(self) -> Overview:
        """Return the overview of what is known now."""
        with self._lock:
            group_id = self._app.target.group_id or ""
            return Overview(self._app.clock.now_ms(), self._started_ms, self._version, dict(self._collected), group_id)

    def wait(self, version: int, timeout_s: float) -> Overview:
        """Wait for an overview newer than `version`; return the same one if `timeout_s` passes without a change."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version or self._ended.is_set(), timeout_s)
        return self.overview()

    def look_once(self, deadline: Deadline) -> Overview:
        """Look at each source once, side by side, and wait until `deadline`. Those that are `after` others begin when
        these have ended, or when half of the time is over.
        """
        first = self._look_side_by_side([each for each in self.sources if not each.after], deadline.half())
        second = self._look_side_by_side([each for each in self.sources if each.after], deadline)
        for thread in (*first, *second):
            thread.join(deadline.remaining_s())
        return self.overview()

    def _look_side_by_side(self, sources: Sequence[FactSource], deadline: Deadline) -> list[threading.Thread]:
        threads = [threading.Thread(target=self.look, args=(each,), daemon=True) for each in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(deadline.remaining_s())
        return threads

    def look(self, source: FactSource) -> None:
        """Look once at one source, with its own deadline; every outcome is kept, and nothing is raised."""
        clock = self._app.clock
        began_s = clock.monotonic_s()
        self._keep(replace(self._collected[source.name], looking_since_ms=clock.now_ms()))
        app = replace(
            self._app,
            deadline=Deadline.after(source.deadline_s, clock),
            on_event=ignore_events,
            open_topic_reader=following(self._configs[source.name]),
        )
        before = self._collected[source.name]
        done = replace(before, looks=before.looks + 1, looking_since_ms=None)
        try:
            facts = source.look(app, self.overview())
            done = replace(done, facts=facts, facts_ms=clock.now_ms(), error=None, message="")
        except EosctlError as exc:
            done = _failed(done, str(exc.code), exc.message)
        except Exception as exc:
            done = _failed(done, str(EosctlError.code), f"unexpected {type(exc).__name__}")
        self._keep(replace(done, duration_s=clock.monotonic_s() - began_s), ended=True)
        self._tell(before, done)

    def _run(self, source: FactSource) -> None:
        """Look at the source until the end. A failed look is repeated at the next interval, however rare its looks."""
        interval_s = self._collected[source.name].interval_s
        if source.last:
            self._await_others(interval_s / source.every)
        while not self._ended.is_set():
            began_s = self._app.clock.monotonic_s()
            self.look(source)
            self._tidy(interval_s)
            took_s = self._app.clock.monotonic_s() - began_s
            failed = self._collected[source.name].error is not None
            self._ended.wait(pause_s(interval_s / source.every if failed else interval_s, took_s))

    def _await_others(self, patience_s: float) -> None:
        others = [each.name for each in self.sources if not each.last]
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended.is_set() or all(self._collected[name].looks for name in others), patience_s
            )

    def _tidy(self, interval_s: float) -> None:
        """Collect cycles from time to time: librdkafka's clients are in some, with their threads and buffers.

        eosctl's commands are short, and at their start Python is set to look for cycles very rarely.
        """
        with self._lock:
            now_s = self._app.clock.monotonic_s()
            if now_s < self._tidied_s + interval_s / 2:
                return
            self._tidied_s = now_s
        gc.collect()
        give_back_memory()

    def _keep(self, collected: Collected, *, ended: bool = False) -> None:
        with self._changed:
            self._collected[collected.source] = collected
            if ended:
                self._version += 1
                self._changed.notify_all()

    def _tell(self, before: Collected, now: Collected) -> None:
        """Report once that a source fails, and once that it has recovered."""
        if now.error == before.error:
            return
        if now.error is None:
            self._app.on_event(Event(f"{now.source}: collected again"))
        else:
            self._app.on_event(Event(f"{now.source}: {now.error}: {now.message}", warning=True))


def pause_s(interval_s: float, took_s: float) -> float:
    """Return how long a source rests after a look: until its interval is over, but at least as long as the look took,
    up to an interval. A slow cluster is not asked without a pause.
    """
    return max(interval_s - took_s, min(took_s, interval_s), interval_s / 10)


def _failed(collected: Collected, code: str, message: str) -> Collected:
    failures = {**collected.failures, code: collected.failures.get(code, 0) + 1}
    return replace(collected, error=code, message=message, failures=failures)
