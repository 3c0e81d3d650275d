"""What every ConnectWorker does: one suite, on the fake of the tests and on real workers, new and old."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.connect.rest import RestConnectWorker
from eosctl.connect.signing import signature_headers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Clock, Deadline
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    EosctlError,
    NotFoundError,
    UnauthorizedError,
    UnsupportedError,
)
from eosctl.group.modes import probe_config, probe_mode
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.ports import ConnectWorker
from eosctl.sandbox.stack import Stack
from tests.fakes.connect import FakeConnect
from tests.fakes.connect_worker import UNSUPPORTED, FakeConnectWorker
from tests.fakes.connectors import FILE_SOURCE
from tests.sandbox_fixtures import GROUP, PATIENCE_S, wait_until

ATTEMPTS = 8
VERSIONS = {"fake": "4.3.1", "stack": "4.3.1", "newest_stack": "4.4.0", "old_stack": "3.9.2"}


@dataclass
class Subject:
    """A worker, and the name and configuration of a connector that a test may create.

    `config_records` are what the config topic has, the oldest first.
    """

    worker: ConnectWorker
    name: str
    config: dict[str, str]
    clock: Clock
    version: str
    config_records: Callable[[], Sequence[tuple[str, Any]]]
    session_key: Callable[[], bytes]

    @property
    def is_real(self) -> bool:
        """Whether workers run, which may be done with a change before the next look."""
        return not isinstance(self.worker, FakeConnectWorker)

    def entry(self) -> ConnectorEntry | None:
        """The connector as `connectors()` has it; None when there is none."""
        return self.worker.connectors().get(self.name)

    def state(self) -> tuple[str, ...]:
        """The connector's state, and those of its tasks."""
        entry = self.entry()
        return () if entry is None else (entry.state, *(task.state for task in entry.tasks))

    def wait_state(self, *states: str) -> None:
        """Waits until REST shows this of connector and tasks; a task that has gone may leave its last status."""

        def is_shown() -> bool:
            return tuple(state for state in self.state() if state != "UNASSIGNED") == states

        wait_until(is_shown, what=f"{self.name} to be {states}", clock=self.clock)

    def put(self, **config: str) -> None:
        """Creates or changes the connector."""
        self.worker.put_connector_config(self.name, {**self.config, **config})


@pytest.fixture(
    params=[
        "fake",
        pytest.param("stack", marks=(pytest.mark.live, pytest.mark.on("stack"))),
        pytest.param("newest_stack", marks=(pytest.mark.live, pytest.mark.on("newest_stack"))),
        pytest.param("old_stack", marks=(pytest.mark.live, pytest.mark.on("old_stack"))),
    ]
)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    name = f"contract {uuid.uuid4().hex[:8]} ö"
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    topic = f"contract-{uuid.uuid4().hex[:8]}"
    config = {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": str(path), "topic": topic}
    if request.param == "fake":
        made = _fake(name, config)
    else:
        made = _real(request.getfixturevalue(request.param), name, config, VERSIONS[request.param])
    yield made
    if name in made.worker.connectors():
        made.worker.delete_connector(name)


def _fake(name: str, config: dict[str, str]) -> Subject:
    connect = FakeConnect()
    records: list[tuple[str, Any]] = []
    connect.keep_config = lambda key, value: records.append((key, value))

    return Subject(
        worker=connect.worker(),
        name=name,
        config=config,
        clock=connect.time.clock(),
        version=VERSIONS["fake"],
        config_records=lambda: records,
        session_key=lambda: connect.session_key,
    )


def _real(stack: Stack, name: str, config: dict[str, str], version: str) -> Subject:
    def config_records() -> list[tuple[str, Any]]:
        settings = ClientSettings((stack.bootstrap_servers,))
        with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as store:
            found = store.read("connect-configs").records
        return [((record.key or b"").decode(), json.loads(record.value or b"null")) for record in found]

    return Subject(
        worker=RestConnectWorker(stack.urls(GROUP)[0], deadline=Deadline.after(4 * PATIENCE_S)),
        name=name,
        config=config,
        clock=Clock(),
        version=version,
        config_records=config_records,
        session_key=lambda: base64.b64decode(dict(config_records())["session-key"]["key"]),
    )


def test_the_status_of_one_is_that_of_the_listing(subject: Subject) -> None:
    with pytest.raises(NotFoundError):
        subject.worker.connector_status(subject.name)
    subject.put()
    subject.wait_state("RUNNING", "RUNNING")
    entry = subject.entry()
    assert entry is not None
    assert subject.worker.connector_status(subject.name) == replace(entry, config={}, wanted=())


def test_the_worker_names_its_version_and_its_cluster(subject: Subject) -> None:
    root = subject.worker.root()
    assert root["version"] == subject.version
    assert root["kafka_cluster_id"]
    assert subject.worker.health() == "healthy"


def test_its_answers_bear_the_time(subject: Subject) -> None:
    assert subject.worker.date_ms() == pytest.approx(subject.clock.now_ms(), abs=10_000)


def test_plugins_have_class_and_type(subject: Subject) -> None:
    found = {(plugin["class"], plugin["type"]) for plugin in subject.worker.plugins()}
    assert (FILE_SOURCE, "source") in found


def test_an_enabled_worker_is_proven_enabled(subject: Subject) -> None:
    answer = subject.worker.validate(FILE_SOURCE, probe_config(FILE_SOURCE))
    assert [each["value"]["errors"] for each in answer["configs"] if each["value"]["errors"]] == [[UNSUPPORTED]]  # type: ignore[attr-defined]
    mode, reason = probe_mode(subject.worker)
    assert mode is Mode.ENABLED
    assert "FileStreamSourceConnector" in reason


def test_the_life_of_a_connector(subject: Subject) -> None:
    """Create, look, stop, resume, pause, restart, delete; its name needs percent-encoding."""
    worker, name = subject.worker, subject.name
    subject.put()
    subject.wait_state("RUNNING", "RUNNING")
    wait_until(lambda: worker.topics(name), what="its first record", clock=subject.clock)
    assert worker.topics(name) == [subject.config["topic"]]
    assert worker.connector_config(name) == {**subject.config, "name": name}
    entry = subject.entry()
    assert entry is not None
    assert (entry.type, entry.config) == ("source", {**subject.config, "name": name})
    assert entry.wanted == (0,)
    assert [(task.task, bool(task.worker_id)) for task in entry.tasks] == [(0, True)]
    assert entry.itself is not None
    assert entry.itself.worker_id
    worker.set_state(name, "stop")
    subject.wait_state("STOPPED")
    assert (subject.entry() or entry).wanted == ()
    assert all(set(entry) == {"partition", "offset"} for entry in worker.offsets(name))
    worker.set_state(name, "resume")
    subject.wait_state("RUNNING", "RUNNING")
    worker.set_state(name, "pause")
    subject.wait_state("PAUSED", "PAUSED")
    worker.restart(name)
    worker.delete_connector(name)
    wait_until(lambda: subject.entry() is None, what=f"{name} to be gone", clock=subject.clock)
    _check_config_records(subject)


def _check_config_records(subject: Subject) -> None:
    """The tasks go before the target state says so; a set of tasks that starts gets its task-count record."""
    name = subject.name
    found = [(key.replace(name, "c"), value) for key, value in subject.config_records() if name in key]
    tasks = [("task-c-0", None), ("commit-c", {"tasks": 1}), ("tasks-fencing-c", {"task-count": 1})]
    assert [(key, None if value and "properties" in value else value) for key, value in found] == [
        ("connector-c", None),
        *tasks,
        ("commit-c", {"tasks": 0}),
        ("target-state-c", {"state": "PAUSED", "state.v2": "STOPPED"}),
        ("target-state-c", {"state": "STARTED", "state.v2": "STARTED"}),
        *tasks,
        ("target-state-c", {"state": "PAUSED", "state.v2": "PAUSED"}),
        ("restart-connector-c", {"include-tasks": True, "only-failed": True}),
        ("connector-c", None),
        ("target-state-c", None),
    ]


def test_a_connector_that_is_created_stopped_has_no_task_until_it_is_resumed(subject: Subject) -> None:
    """KIP-980: the target state is written before the config, so that no worker starts it in between."""
    worker, name = subject.worker, subject.name
    worker.create_connector(name, subject.config, "STOPPED")
    subject.wait_state("STOPPED")
    entry = subject.entry()
    assert entry is not None
    assert (entry.config, entry.wanted) == ({**subject.config, "name": name}, ())
    assert list(worker.offsets(name)) == []
    with pytest.raises(AlreadyExistsError):
        worker.create_connector(name, subject.config, "STOPPED")
    found = [(key.replace(name, "c"), value) for key, value in subject.config_records() if name in key]
    assert found == [
        ("target-state-c", {"state": "PAUSED", "state.v2": "STOPPED"}),
        ("connector-c", {"properties": {**subject.config, "name": name}}),
    ]
    worker.set_state(name, "resume")
    subject.wait_state("RUNNING", "RUNNING")


def test_a_connector_with_a_wrong_config_is_not_created(subject: Subject) -> None:
    with pytest.raises(ConnectError, match=r"tasks\.max"):
        subject.worker.create_connector(subject.name, {**subject.config, "tasks.max": "many"}, "STOPPED")
    assert subject.entry() is None
    with pytest.raises(NotFoundError):
        subject.worker.connector_config(subject.name)


def test_a_change_is_accepted_first_and_seen_later(subject: Subject) -> None:
    """A look right after a change may still tell the state before it: the fake always does, a worker now and then."""
    running, paused, stopped = ("RUNNING", "RUNNING"), ("PAUSED", "PAUSED"), ("STOPPED",)
    subject.put()
    subject.wait_state(*running)
    late: set[str] = set()
    for _attempt in range(ATTEMPTS):
        before: tuple[str, ...] = running
        for verb, after in (("stop", stopped), ("resume", running), ("pause", paused), ("resume", running)):
            subject.worker.set_state(subject.name, verb)
            if subject.state() == before:
                late.add(verb)
            subject.wait_state(*after)
            before = after
        if late == {"stop", "resume", "pause"} or subject.is_real:
            return
    pytest.fail(f"only {late} was not seen at once")


def test_a_task_that_was_restarted_is_shown_as_failed_for_a_while(subject: Subject) -> None:
    """A look right after the restart may still tell the failure that was before it: the fake's does."""
    subject.put(**_broken(subject))
    for _attempt in range(ATTEMPTS):
        wait_until(lambda: subject.state() == ("RUNNING", "FAILED"), what="a FAILED task", clock=subject.clock)
        subject.worker.restart(subject.name)
        if subject.state() == ("RUNNING", "FAILED"):
            break
        if subject.is_real:
            break
    else:
        pytest.fail("the restart was always seen at once")
    trace = wait_until(lambda: _trace(subject), what="the next failure", clock=subject.clock)
    assert "DataException" in trace


def _trace(subject: Subject) -> str | None:
    """The failure that one look tells of the task; the next look may find the task running again."""
    tasks = (subject.entry() or ConnectorEntry()).tasks
    return next((task.trace for task in tasks if task.state == "FAILED"), None)


def _broken(subject: Subject) -> dict[str, str]:
    """A config whose task fails each time that it was started."""
    if isinstance(subject.worker, FakeConnectWorker):
        group, trace = subject.worker.group, "org.apache.kafka.connect.errors.DataException: no number"

        def fail() -> None:
            group.connectors[subject.name].fail(trace=trace)

        group.after("start_task", lambda _call: group.time.later(1, fail))
    cast = {"type": "org.apache.kafka.connect.transforms.Cast$Value", "spec": "int8"}
    return {"transforms": "cast", **{f"transforms.cast.{name}": value for name, value in cast.items()}}


def test_tasks_are_made_only_while_a_connector_is_started(subject: Subject) -> None:
    """Stopped and then paused it has none, and a new config gives it none."""
    worker, name = subject.worker, subject.name
    subject.put()
    subject.wait_state("RUNNING", "RUNNING")
    worker.set_state(name, "stop")
    subject.wait_state("STOPPED")
    worker.set_state(name, "pause")
    subject.wait_state("PAUSED")
    subject.put(**{"batch.size": "7"})
    assert worker.connector_config(name)["batch.size"] == "7"
    wait_until(lambda: subject.state() == ("PAUSED",), what="PAUSED with the new config", clock=subject.clock)
    entry = subject.entry()
    assert entry is not None
    assert entry.wanted == ()
    worker.set_state(name, "resume")
    subject.wait_state("RUNNING", "RUNNING")


def test_offsets_are_altered_while_stopped_only(subject: Subject) -> None:
    worker, name = subject.worker, subject.name
    subject.put()
    subject.wait_state("RUNNING", "RUNNING")
    entry = {"partition": {"filename": subject.config["file"]}, "offset": {"position": 4}}
    with pytest.raises(ConnectError, match="STOPPED state"):
        worker.alter_offsets(name, [entry])
    worker.set_state(name, "stop")
    subject.wait_state("STOPPED")
    worker.alter_offsets(name, [entry])
    assert worker.offsets(name) == [entry]
    worker.alter_offsets(name, [{**entry, "offset": None}])
    assert worker.offsets(name) == []
    with pytest.raises(ConnectError, match="need to be provided"):
        worker.alter_offsets(name, [])


def test_a_connector_that_is_not_there_has_written_to_no_topic(subject: Subject) -> None:
    """It is no error, unlike every other request for it."""
    assert list(subject.worker.topics("no such")) == []


UNKNOWN: list[Callable[[ConnectWorker], object]] = [
    lambda worker: worker.connector_config("no such"),
    lambda worker: worker.delete_connector("no such"),
    lambda worker: worker.set_state("no such", "stop"),
    lambda worker: worker.restart("no such"),
    lambda worker: worker.offsets("no such"),
    lambda worker: worker.alter_offsets("no such", [{"partition": {}, "offset": None}]),
]


@pytest.mark.parametrize("call", UNKNOWN)
def test_an_unknown_connector_is_not_found(subject: Subject, call: Callable[[ConnectWorker], object]) -> None:
    with pytest.raises(NotFoundError, match="no such"):
        call(subject.worker)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda worker: worker.set_state("no such", "fly"), UnsupportedError),
        (lambda worker: worker.put_connector_config("bad", {"a": "b"}), ConnectError),
    ],
)
def test_refusals(subject: Subject, call: Callable[[ConnectWorker], object], error: type[EosctlError]) -> None:
    with pytest.raises(error):
        call(subject.worker)


def test_a_fence_is_done_for_a_right_signature_only(subject: Subject) -> None:
    """The signature is looked at before the connector is; the fencing ends in a task-count record."""
    worker, name, key = subject.worker, subject.name, subject.session_key()
    subject.put()
    subject.wait_state("RUNNING", "RUNNING")
    worker.set_state(name, "stop")
    subject.wait_state("STOPPED")
    half = signature_headers(key)
    del half["X-Connect-Request-Signature-Algorithm"]
    refused: list[tuple[dict[str, str], type[EosctlError], str]] = [
        ({}, ConnectError, "missing required signature"),
        (half, ConnectError, "missing required signature"),
        (signature_headers(b"another key"), UnauthorizedError, "invalid signature"),
        (signature_headers(key, b"another body"), UnauthorizedError, "invalid signature"),
        (signature_headers(key, algorithm="HmacSHA1"), ConnectError, "does not support the 'HmacSHA1'"),
    ]
    for headers, error, said in refused:
        for connector in (name, "no such"):
            with pytest.raises(error, match=said):
                worker.fence(connector, headers)
    fenced = [value for key, value in subject.config_records() if key == f"tasks-fencing-{name}"]
    assert fenced == [{"task-count": 1}]
    worker.fence(name, signature_headers(key))
    with pytest.raises(NotFoundError, match="no such"):
        worker.fence("no such", signature_headers(key))
    fenced = [value for key, value in subject.config_records() if key == f"tasks-fencing-{name}"]
    assert fenced == [{"task-count": 1}, {"task-count": 0}]


def test_a_config_that_is_not_valid_is_told_of_by_property_and_refused(subject: Subject) -> None:
    config = {**subject.config, "name": subject.name, "tasks.max": "many"}
    answer: Any = subject.worker.validate(FILE_SOURCE, config)
    errors = {each["value"]["name"]: each["value"]["errors"] for each in answer["configs"] if each["value"]["errors"]}
    told = "Invalid value many for configuration tasks.max: Not a number of type INT"
    assert (list(errors), told in errors["tasks.max"]) == (["tasks.max"], True), "there may be more to say of it"
    assert answer["error_count"] >= 1
    with pytest.raises(ConnectError, match=r"400: Connector configuration is invalid and contains the following"):
        subject.put(**{"tasks.max": "many"})
    assert subject.entry() is None
