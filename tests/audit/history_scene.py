"""A history in the brokers of a fake cluster, and what `audit` says of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from eosctl.audit.audit import Audited, audit_of
from eosctl.audit.reading.gather import read_logs
from eosctl.audit.scope import Scope
from eosctl.audit.value_checks import Fields
from eosctl.core.records import Place, Record, Window
from tests.audit.histories import OFFSETS, OUT, START_MS, UNREAD, Entry, History
from tests.audit.log_scene import LogScene
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import FakeTime
from tests.fakes.faults import Call
from tests.fakes.partitions import FakePartition, FakeProducer

_MARGIN_MS = 12_000
"""So far from a window's edge brokers' clocks can't be."""


@dataclass
class HistoryScene:
    """A history as brokers have it, and the window that is asked for.

    Of a live one, what comes later is appended while the audit reads.
    """

    history: History
    scene: LogScene = field(default_factory=lambda: LogScene(time=FakeTime(0.0), nodes=1))
    window: Window = field(default_factory=Window)
    begin: Mapping[Place, int] | None = None
    _later: dict[Place, list[Entry]] = field(default_factory=dict)
    _places: set[Place] = field(default_factory=set)
    _now_ms: float = 0.0
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        history, scene = self.history, self.scene
        setting = history.setting
        rng = self._rng = random.Random(f"scene {history.rng.random()}")  # noqa: S311 - no secret
        scene.time.now_s = history.ends_ms / 1000 + rng.choice((1, 60, 100_000))
        state = scene.state
        state.topics.clear()
        topics = {OUT: setting.partitions, UNREAD: 1}
        topics |= dict.fromkeys(history.offsets_topics, setting.offsets_partitions)
        for topic, partitions in topics.items():
            state.add_topic(topic, partitions, {})
        for producer in history.producers.values():
            if producer.producer_id not in history.unnamed:
                state.transactions[producer.transactional_id] = FakeTransaction(producer.producer_id, producer.epoch)
        logs = history.logs()
        self._now_ms = rng.uniform(START_MS, history.ends_ms) if setting.live else float("inf")
        self._show(logs)
        if setting.live:
            scene.time.now_s = self._now_ms / 1000
            scene.batches.before("plan", self._show_more)
        self._take_away(rng)
        self._choose_window(rng)

    def _show(self, logs: Mapping[Place, list[Entry]]) -> None:
        """Append what was written by now; brokers are asked one after the other."""
        for place, entries in logs.items():
            self._places.add(place)
            self._now_ms += self._rng.uniform(0, 10)
            log = self.scene.state.log(*place)
            due = [each for each in entries if each.at_ms <= self._now_ms]
            for each in due:
                _append(log, each, self.history.marker_ms(place, each.at_ms))
            self._later[place] = entries[len(due) :]
        self._tell_coordinators()

    def _tell_coordinators(self) -> None:
        """Let the coordinators say what has not ended by now."""
        for known in self.scene.state.transactions.values():
            known.state = "Empty"
            known.partitions = set()
        for each in (*self.history.transactions, *self.history.open):
            its = self.scene.state.transactions.get(each.transactional_id)
            if its is None or not each.begun_ms <= self._now_ms or each.ended_ms < self._now_ms < float("inf"):
                continue
            begun = {entry.place for entry in each.data if entry.at_ms <= self._now_ms}
            ended = {place for place, marker in each.markers.items() if marker.at_ms <= self._now_ms}
            if self._now_ms == float("inf") and each.markers:
                continue
            its.state = "PrepareCommit" if ended else "Ongoing"
            its.producer_id, its.producer_epoch = each.producer_id, each.epoch + (bool(ended) and each.is_own_epoch)
            its.started_ms, its.partitions = int(each.begun_ms), begun - ended
            its.looks_left = 1 << 30

    def _show_more(self, _call: Call) -> None:
        """Time has passed: the brokers have written more."""
        self._now_ms = max(self._now_ms + self._rng.choice((0, 5, 50, 700)), self.scene.time.now_s * 1000)
        self._show(self._later)

    def _take_away(self, rng: random.Random) -> None:
        """Let retention and compaction do what they do, before what was cheated."""
        history, setting = self.history, self.history.setting
        until_ms = history.ends_ms if history.cheated_ms is None else history.cheated_ms[0] - 1
        if setting.retention:
            gone_ms = rng.uniform(START_MS - 1, until_ms)
            for place in [place for place in sorted(self._places) if place[0] == OUT]:
                self._retain(place, gone_ms + rng.uniform(-0.2, 0) * (gone_ms - START_MS))
        if setting.lost_offsets:
            gone_ms = rng.uniform(START_MS - 1, until_ms)
            for place in [place for place in sorted(self._places) if place[0] != OUT]:
                self._retain(place, gone_ms)
        if setting.compacted_output:
            clean_ms = rng.uniform(START_MS, until_ms)
            for place in [place for place in sorted(self._places) if place[0] == OUT]:
                _compact(self.scene.state.log(*place), self._count_before(place, clean_ms), rng)
        if setting.compaction:
            clean_ms = rng.uniform(START_MS, history.ends_ms if history.may_compact else until_ms)
            for place in [place for place in sorted(self._places) if place[0] == OFFSETS]:
                _compact(self.scene.state.log(*place), self._count_before(place, clean_ms), rng)

    def _count_before(self, place: Place, at_ms: float) -> int:
        return sum(1 for each in self.history.entries if each.place == place and each.at_ms < at_ms)

    def _retain(self, place: Place, gone_ms: float) -> None:
        log = self.scene.state.log(*place)
        log.delete_before(min(self._count_before(place, gone_ms), log.end))

    def _choose_window(self, rng: random.Random) -> None:
        """Choose a window that what was cheated lies in."""
        history, setting = self.history, self.history.setting
        first_ms, last_ms = history.cheated_ms or (history.ends_ms, START_MS)
        if history.cheated_ms is not None:
            first_ms, last_ms = first_ms - _MARGIN_MS, last_ms + _MARGIN_MS
        since_ms = rng.uniform(min(START_MS - 20_000, first_ms - 1), first_ms)
        until_ms = rng.uniform(max(last_ms, since_ms + 1), history.ends_ms + 60_000)
        if setting.window == "since":
            self.window = Window(since_ms=int(since_ms))
        elif setting.window == "until":
            self.window = Window(until_ms=int(until_ms))
        elif setting.window == "both":
            self.window = Window(since_ms=int(since_ms), until_ms=int(until_ms))
        elif setting.window in ("offset", "begin"):
            firsts = {place: self._last_marker(place, since_ms) for place in sorted(self._places) if place[0] == OUT}
            if setting.window == "offset":
                self.window = Window(since_offset=min(firsts.values(), default=0))
            else:
                self.begin = firsts

    def _last_marker(self, place: Place, before_ms: float) -> int:
        """Return the offset of the last marker before that time: a window of offsets has the time of its first one."""
        there = enumerate(self.history.logs().get(place, ()))
        return max((at for at, each in there if each.commit is not None and each.at_ms < before_ms), default=0)

    def scope(self) -> Scope:
        """Return what `find_scope` finds of it."""
        return Scope(
            app=self.scene.app(),
            connector="c",
            config={"topic": OUT},
            topics=(OUT,),
            offsets_topics=tuple(self.history.offsets_topics),
            connectors=frozenset({"c", "d"}),
        )

    def audit(self) -> Audited:
        """Return what `audit` says, without the ways that find topics and print."""
        scope = self.scope()
        read = read_logs(scope, self.window, check_crcs=False, begin=self.begin)
        return audit_of(scope.app, scope, self.window, read, Fields())[0]


def _append(log: FakePartition, entry: Entry, marker_ms: int) -> None:
    producer = (entry.producer_id, entry.epoch)
    if entry.commit is None:
        record = Record(*entry.place, -1, entry.stamp_ms, entry.key, entry.value)
        log.append(record, producer, now_ms=int(entry.at_ms), transactional=entry.is_transactional)
        return
    known = log.producers.setdefault(entry.producer_id, FakeProducer(entry.epoch, int(entry.at_ms)))
    known.producer_epoch = min(known.producer_epoch, entry.epoch)
    log.mark(producer, commit=entry.commit, now_ms=marker_ms)


def _compact(log: FakePartition, stop: int, rng: random.Random) -> None:
    """Clean the log up to an offset, as the cleaner does with closed segments: markers without records may go too."""
    stop = min(stop, log.lso, log.batches[-1].base_offset if log.batches else 0)
    committed = {each.offset for each in log.committed()}
    newest = {each.key: each.offset for each in log.records if each.offset < stop and each.offset in committed}
    log.records = [each for each in log.records if each.offset >= stop or newest.get(each.key) == each.offset]
    left = {each.offset for each in log.records}
    last = {each.producer_id: each.base_offset for each in log.batches if not each.is_control}
    keeps_markers, keeps_last = rng.random() < 0.7, rng.random() < 0.5
    kept = []
    has_records: set[int] = set()
    for each in log.batches:
        if each.is_control:
            if keeps_markers or each.base_offset >= stop or each.producer_id in has_records:
                kept.append(each)
            has_records.discard(each.producer_id)
        elif each.base_offset in left:
            has_records.add(each.producer_id)
            kept.append(each)
        elif keeps_last and last[each.producer_id] == each.base_offset:
            kept.append(each._replace(records=0))
    log.batches = kept
