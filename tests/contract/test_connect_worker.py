"""What every ConnectWorker does: one suite, on the fake of the tests and on a real worker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.core.worker_modes import WorkerMode
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, NotFoundError, UnsupportedError
from eosctl.ops.ports import ConnectWorker
from eosctl.ops.worker_view import probe_mode
from tests.fakes.connect import FILE_SOURCE, FakeConnect, FakeConnectWorker
from tests.sandbox_fixtures import GROUP, wait_until


@dataclass
class Subject:
    """A worker, and the name and configuration of a connector that a test may create."""

    worker: ConnectWorker
    name: str
    config: dict[str, str]

    def entry(self) -> Any:
        """The connector's entry of `connectors()`; None when there is none."""
        return self.worker.connectors().get(self.name)

    def wait_tasks(self, *states: str) -> None:
        """Waits until REST shows exactly these task states."""

        def there() -> bool:
            entry = self.entry()
            return entry is not None and [task["state"] for task in entry["status"]["tasks"]] == list(states)

        wait_until(there, what=f"tasks of {self.name} to be {list(states)}")


@pytest.fixture(params=["fake", pytest.param("real", marks=[pytest.mark.live, pytest.mark.on("stack")])])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    name = f"contract {uuid.uuid4().hex[:8]} ö"
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    worker: ConnectWorker
    if request.param == "fake":
        worker = FakeConnectWorker(FakeConnect(), "http://w0:8083")
    else:
        url = request.getfixturevalue("stack").urls(GROUP)[0]
        worker = RestConnectWorker(url, deadline=Deadline.after(90))
    topic = f"contract-{uuid.uuid4().hex[:8]}"
    config = {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": str(path), "topic": topic}
    yield Subject(worker, name, config)
    if name in worker.connectors():
        worker.delete_connector(name)


def test_the_worker_names_its_version_and_its_cluster(subject: Subject) -> None:
    root = subject.worker.root()
    assert root["version"] == "4.3.1"
    assert root["kafka_cluster_id"]
    assert subject.worker.health() == "healthy"


def test_plugins_have_class_and_type(subject: Subject) -> None:
    found = {(plugin["class"], plugin["type"]) for plugin in subject.worker.plugins()}
    assert (FILE_SOURCE, "source") in found


def test_an_enabled_worker_is_proven_enabled(subject: Subject) -> None:
    mode, reason = probe_mode(subject.worker)
    assert mode is WorkerMode.ENABLED
    assert "FileStreamSourceConnector" in reason


def test_the_life_of_a_connector(subject: Subject) -> None:
    """Create, look, stop, resume, restart, delete; its name needs percent-encoding."""
    worker, name = subject.worker, subject.name
    worker.put_connector_config(name, subject.config)
    subject.wait_tasks("RUNNING")
    assert worker.connector_config(name) == {**subject.config, "name": name}
    entry = subject.entry()
    assert entry["info"]["type"] == "source"
    assert entry["info"]["config"] == {**subject.config, "name": name}
    assert entry["status"]["connector"]["state"] == "RUNNING"
    assert [(task["id"], bool(task["worker_id"])) for task in entry["status"]["tasks"]] == [(0, True)]
    worker.set_state(name, "stop")
    subject.wait_tasks()
    wait_until(lambda: subject.entry()["status"]["connector"]["state"] == "STOPPED", what="STOPPED")
    assert all(set(entry) == {"partition", "offset"} for entry in worker.offsets(name))
    worker.set_state(name, "resume")
    subject.wait_tasks("RUNNING")
    worker.set_state(name, "pause")
    subject.wait_tasks("PAUSED")
    worker.restart(name)
    worker.delete_connector(name)
    wait_until(lambda: subject.entry() is None, what=f"{name} to be gone")


def test_offsets_are_altered_while_stopped_only(subject: Subject) -> None:
    worker, name = subject.worker, subject.name
    worker.put_connector_config(name, subject.config)
    subject.wait_tasks("RUNNING")
    entry = {"partition": {"filename": subject.config["file"]}, "offset": {"position": 4}}
    with pytest.raises(ConnectError, match="STOPPED state"):
        worker.alter_offsets(name, [entry])
    worker.set_state(name, "stop")
    subject.wait_tasks()
    worker.alter_offsets(name, [entry])
    assert worker.offsets(name) == [entry]
    worker.alter_offsets(name, [{**entry, "offset": None}])
    assert worker.offsets(name) == []
    with pytest.raises(ConnectError, match="need to be provided"):
        worker.alter_offsets(name, [])


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


def test_a_fence_without_signature_is_refused(subject: Subject) -> None:
    assert isinstance(subject.worker, RestConnectWorker | FakeConnectWorker)
    subject.worker.put_connector_config(subject.name, subject.config)
    with pytest.raises(ConnectError, match="missing required signature"):
        subject.worker.fence(subject.name, {})
