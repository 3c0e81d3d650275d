"""Connectors that say SUPPORTED and are not exactly-once, under faults, over a log in memory and the real audit."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import yaml

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode
from eosctl.rehearse.faults.fault import SimpleFault
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.plan import RehearsalPlan, RehearsalRequest
from eosctl.rehearse.proof import FaultAudit, FaultAuditRequest, audit_connector
from eosctl.rehearse.rows import FaultRow, FaultVerdict, RehearsalSummary
from eosctl.rehearse.rules import FitConnector
from eosctl.rehearse.run import rehearse_on
from eosctl.report import Report
from tests.audit.log_scene import OUT, LogScene, Task
from tests.fakes.world import OFFSETS
from tests.rehearse.rehearsing import DOCUMENT
from tests.rehearse.test_rehearse_run import QuietGround, QuietStage


@dataclass
class Source:
    """A source of rows 1, 2, 3 … in each of its shards, which are source partitions; a task commits a row of each."""

    shards: tuple[str, ...] = ("a-",)
    rows: int = 1 << 30
    before: int = 25
    offset_member: str = "n"
    has_ids: bool = True
    again_every: int = 0
    batch: int = 1
    source_partitions: bool = True
    scene: LogScene = field(default_factory=LogScene)
    at: dict[str, int] = field(init=False)
    task: Task = field(init=False)

    def __post_init__(self) -> None:
        self.scene.time.now_s = 0.0
        self.at = dict.fromkeys(self.shards, 0)
        self.task = self.scene.task()
        for _ in range(self.before + 1):
            self.deliver()

    def deliver(self) -> None:
        """One more row of each shard that has one, or a batch, in a transaction with its source offset."""
        shards = [shard for shard, at in self.at.items() if at < self.rows]
        for shard in shards:
            for number in range(self.at[shard] + 1, min(self.at[shard] + self.batch, self.rows) + 1):
                self.at[shard] = number
                self.task.write(OUT, b"k", json.dumps(self._row(shard, number)).encode())
            key = self._key(shard)
            self.task.write(OFFSETS, key, json.dumps({self.offset_member: self.at[shard]}).encode())
        if shards:
            self.task.end()
        self._go_on()

    def deliver_plainly(self) -> None:
        """One more row of each shard, and its offset, as of workers that are not enabled."""
        for shard in self.at:
            self.at[shard] += 1
            self.scene.plain(OUT, b"k", json.dumps(self._row(shard, self.at[shard])).encode())
            offset = {self.offset_member: self.at[shard]}
            self.scene.plain(OFFSETS, self._key(shard), json.dumps(offset).encode())

        self._go_on()

    def _go_on(self) -> None:
        """The clock is at the time of the records, as in a sandbox."""
        time, state = self.scene.time, self.scene.state
        time.now_s = max(time.now_s, state.stamp_ms / 1000)

    def _key(self, shard: str) -> bytes:
        return json.dumps(["c", {"filename": shard if self.source_partitions else "all"}]).encode()

    def _row(self, shard: str, number: int) -> dict[str, object]:
        if self.again_every and not number % self.again_every:
            number -= 100
        return {"id": f"{shard}{number}"} if self.has_ids else {"on": number % 2}

    def restart(self, *, lose: int = 0, again: int = 0, forget: str | None = None) -> None:
        """A task of after a fault, which goes on elsewhere than where the former ended."""
        self.task = self.scene.task()
        for shard in self.at:
            self.at[shard] += lose - again
        if forget is not None:
            del self.at[forget]


def fault(source: Source, name: str = "kill-worker", *, leaves_mode: bool = False, **restart: Any) -> type[SimpleFault]:
    """A fault after which the source goes on as `restart` says."""

    def inject(_self: Any, ground: Any) -> None:
        ground.app.clock.sleep_s(1)
        source.restart(**restart)
        if leaves_mode:
            source.deliver_plainly()
        source.deliver()

    return type("Now", (SimpleFault,), {"name": name, "what": "x", "leaves_mode": leaves_mode, "inject": inject})


class _Ground(QuietGround):
    """One whose logs end where the real one's would."""

    log_ends = Ground.log_ends


def rehearse(
    source: Source,
    *faults: Any,
    audit: Callable[[App, FaultAuditRequest], FaultAudit] = audit_connector,
    **request: Any,
) -> Report:
    """The rehearsal; before each audit a row of each shard is delivered."""
    app = source.scene.app(connect_urls=("http://w0:8083",), offset_topic=OFFSETS)
    asked = RehearsalRequest(seed=1, **{"start_mode": Mode.ENABLED, **request})
    plan = RehearsalPlan(asked, "4.3.1", "s", FitConnector("c", {"connector.class": "x"}), faults, {})

    def audited(app: App, question: FaultAuditRequest) -> FaultAudit:
        source.deliver()
        return audit(app, question)

    stage = QuietStage(_Ground(app, connector="c"))
    return rehearse_on(stage, app, plan, audit=audited, on_row=lambda _row: None)


def verdicts(report: Report) -> dict[str, FaultVerdict]:
    return {row.fault: row.verdict for row in report.rows_of(FaultRow)}


FIELDS: dict[str, Any] = {"unique": "id", "sequence": "id"}
FINE, BAD, UNSURE = FaultVerdict.EXACTLY_ONCE, FaultVerdict.NOT_EXACTLY_ONCE, FaultVerdict.UNPROVEN
AS_FAR = FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS


def documented_options() -> dict[str, Any]:
    """What the job of the document asks for."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["rehearse"]["steps"]
    (command,) = [step["run"] for step in steps if "eosctl rehearse" in step.get("run", "")]
    words = shlex.split(command.partition(" > ")[0].replace("\\\n", " "))
    found: dict[str, Any] = {name: words[words.index(f"--{name}") + 1] for name in FIELDS if f"--{name}" in words}
    return {**found, "strict": "--strict" in words}


def test_an_honest_connector_is_exactly_once_with_the_documented_job() -> None:
    source = Source()
    assert rehearse(source, fault(source), **documented_options()).exit_code is ExitCode.OK


def test_the_documented_job_finds_rows_that_are_lost_at_each_kill() -> None:
    """It named --unique alone: three rows less at each kill were exactly_once, exit code 0."""
    source = Source()
    report = rehearse(source, fault(source, lose=3), **documented_options())
    assert (verdicts(report), report.exit_code) == ({"kill-worker": BAD}, ExitCode.FINDINGS)


def test_rows_that_are_lost_are_unproven_where_the_unique_field_counts() -> None:
    """With --unique alone, three rows less at each kill were exactly_once, exit code 0."""
    source = Source()
    report = rehearse(source, fault(source, lose=3), unique="id")
    assert (verdicts(report), report.exit_code) == ({"kill-worker": UNSURE}, ExitCode.PARTIAL)


def test_a_unique_field_that_has_holes_anyway_says_nothing_of_loss() -> None:
    source = Source()
    source.restart(lose=1)
    source.deliver()
    report = rehearse(source, fault(source, lose=3), unique="id")
    assert verdicts(report) == {"kill-worker": AS_FAR}


@pytest.mark.parametrize(
    ("request_", "not_judged"),
    [({}, ["duplicates", "loss"]), ({"unique": "id"}, ["loss"]), ({"sequence": "id"}, []), (FIELDS, [])],
    ids=["nothing", "unique", "sequence", "both"],
)
def test_what_no_field_shows_is_not_said(request_: dict[str, Any], not_judged: list[str]) -> None:
    """Without a field lost rows and rows that came twice were exactly_once, exit code 0."""
    source = Source()
    report = rehearse(source, fault(source), **request_)
    assert verdicts(report) == {"kill-worker": AS_FAR if not_judged else FINE}
    summary = report.summary_of(RehearsalSummary)
    assert (report.exit_code, summary.not_judged) == (ExitCode.OK, not_judged)
    strict = rehearse(Source(), fault(source), strict=True, **request_)
    assert strict.exit_code is (ExitCode.PARTIAL if not_judged else ExitCode.OK)


def test_a_source_partition_that_is_not_read_again_is_unproven() -> None:
    """Records of the other one were enough."""
    source = Source(("a-", "b-"))
    report = rehearse(source, fault(source, forget="b-"), **FIELDS)
    assert (verdicts(report), report.exit_code) == ({"kill-worker": UNSURE}, ExitCode.PARTIAL)
    (row,) = report.rows_of(FaultRow)
    assert 'source partition {"filename": "b-"} made no progress' in row.why


@pytest.mark.parametrize(("fields", "expected"), [(FIELDS, UNSURE), ({"unique": "id"}, AS_FAR)])
def test_a_sequence_that_does_not_go_on_is_unproven(fields: dict[str, Any], expected: FaultVerdict) -> None:
    """Of two shards in one source partition, such as the tables of a database, one is never read again."""
    source = Source(("a-", "b-"), source_partitions=False)
    report = rehearse(source, fault(source, forget="b-"), **fields)
    assert verdicts(report) == {"kill-worker": expected}


@pytest.mark.parametrize(
    ("restart", "expected"),
    [({}, FINE), ({"lose": 3}, BAD), ({"again": 10}, BAD)],
    ids=["honest", "loses rows", "reads what was committed with its offset"],
)
def test_a_roll_may_lose_nothing_and_repeat_nothing_of_before(restart: dict[str, Any], expected: FaultVerdict) -> None:
    """The audit began anew after it: what was lost or read again in between was exactly_once."""
    source = Source()
    report = rehearse(source, fault(source, "roll", leaves_mode=True, **restart), **FIELDS)
    assert verdicts(report) == {"roll": expected}


@pytest.mark.parametrize(
    ("source", "restart", "expected"),
    [
        (Source(("a-",)), {}, AS_FAR),
        (Source(("a-",), rows=10), {"again": 10}, BAD),
        (Source(("a-",), rows=10), {"again": 3}, BAD),
        (Source(("a-",), rows=12, before=0, batch=100), {"again": 5}, BAD),
        (Source(("a-",), rows=200, before=150), {"again": 5}, BAD),
        (Source(("a-",), offset_member="position"), {"again": 5}, BAD),
        (Source(("a-",), rows=20, before=10, has_ids=False), {"again": 5}, UNSURE),
    ],
    ids=[
        "honest",
        "all rows of an ended source",
        "some rows of it",
        "in one transaction",
        "a run",
        "a known source",
        "values are alike",
    ],
)
def test_a_source_that_forgets_its_offsets_is_found_without_any_field(
    source: Source, restart: dict[str, Any], expected: FaultVerdict
) -> None:
    """It was unproven where the source had ended, as nothing new came; else exactly_once."""
    assert verdicts(rehearse(source, fault(source, **restart))) == {"kill-worker": expected}


def test_values_that_come_again_here_and_there_accuse_nobody() -> None:
    source = Source(before=150)
    kind = fault(source)
    source.again_every = 4
    assert verdicts(rehearse(source, kind)) == {"kill-worker": UNSURE}


def test_a_later_row_is_not_better_than_what_it_could_prove_alone() -> None:
    """After an error, a row in which an offsets partition can't be read was exactly_once."""
    source = Source()

    class First(SimpleFault):
        name: ClassVar[str] = "a-first"
        what: ClassVar[str] = "x"

        def inject(self, _ground: Any) -> None:
            source.scene.plain(OUT, b"k", b'{"id":"plain-1"}')

    class Second(First):
        name: ClassVar[str] = "b-second"

        def inject(self, _ground: Any) -> None:
            source.scene.state.leaderless.add((OFFSETS, 0))

    assert verdicts(rehearse(source, First, Second, **FIELDS)) == {"a-first": BAD, "b-second": UNSURE}
