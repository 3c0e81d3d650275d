"""The sandbox in which faults happen, its connector, and whether both are well.

A forwarder between the workers and a broker can delay or cut connections.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import FAILED, RUNNING
from eosctl.core.ids import WorkerId, task_transactional_id, worker_id_of_url
from eosctl.core.records import Place
from eosctl.core.transactions import KafkaFault, TransactionState
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, InterruptedByUserError, NotFoundError
from eosctl.group.gather import read_group
from eosctl.group.members import STABLE
from eosctl.ports import TransactionAdmin
from eosctl.rehearse.log import SourceOffsets, TransactionCounts, read_source_offsets, read_transaction_counts
from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import Node
from eosctl.sandbox.stack import Stack

_CHUNK = 1 << 16
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Forwarder:
    """A forwarder from a loopback port of its own to `upstream`, once that is set.

    While nothing listens there, a connection is accepted and closed. `delay_s` delays all traffic.
    """

    def __init__(self) -> None:
        self.upstream: tuple[str, int] | None = None
        self.delay_s = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = set[socket.socket]()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._listener.getsockname()[1])

    def lead_to(self, address: str) -> None:
        """Forward connections to `host:port` from now on."""
        host, _colon, port = address.rpartition(":")
        self.upstream = (host, int(port))

    def cut(self) -> int:
        """Reset every connection; return how many there were."""
        with self._lock:
            cut = list(self._open)
        for each in cut:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(cut) // 2

    def close(self) -> None:
        """Stop listening, and reset open connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            if self.upstream is None:
                return
            with socket.create_connection(self.upstream, timeout=10) as broker:
                broker.settimeout(None)
                for each in (client, broker):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._open |= {client, broker}
                back = threading.Thread(target=self._pass_on, args=(broker, client), daemon=True)
                back.start()
                self._pass_on(client, broker)
                back.join()
        with self._lock:
            self._open -= {each for each in self._open if each.fileno() == -1}

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        """Forward one direction until either side ends, then end the other direction."""
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if self.delay_s:
                    time.sleep(self.delay_s)
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


GROUP = "rehearse"
_POLL_S = 0.25
_AGAIN_S = 1.0
_LOOK_S = 10.0
_OPEN_TRANSACTION_S = 5.0
_FREEZES_S = 20.0
_GLANCE_S = 0.005
_UNDER_WAY_S = 0.1  # what a worker had sent when it was stopped arrives
_STAYS_WELL_S = 1.5
_FIRST_OFFSET_S = 30.0
_TRACES_S = 10.0
_LINKAGE_ERROR = re.compile(
    r"java\.lang\.(NoClassDefFound|NoSuchMethod|NoSuchField|AbstractMethod|IllegalAccess|IncompatibleClassChange"
    r"|UnsupportedClassVersion|UnsatisfiedLink|ExceptionInInitializer|Verify|Linkage)Error"
)


@dataclass(slots=True)
class Ground:
    """The sandbox of the faults; `config` is the connector's as put, `choose` the seeded chance of the present fault.

    `offsets_topics` are those to which the connector's offsets were moved. `frozen` are workers stopped by SIGSTOP,
    which are not asked. `missed` has the reasons why the present fault did not hit, `transactions` the coordinators'
    log when it began. `forwarders` stand before the brokers, one for each, if the network is to become slow.
    """

    app: App
    directory: Path
    connector: str
    config: Mapping[str, str] = field(repr=False)
    group: str = GROUP
    choose: random.Random = field(default_factory=random.Random)
    forwarders: tuple[Forwarder, ...] = ()
    frozen: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    transactions: TransactionCounts = field(default_factory=TransactionCounts)
    offsets_topics: list[str] = field(default_factory=list)

    @property
    def stack(self) -> Stack:
        """The sandbox as it is now, as others start and stop its nodes, too."""
        found = Stack.find(self.directory)
        if found is None:
            raise NotFoundError(f"the sandbox in {self.directory} is gone", hint="Somebody else has stopped it.")
        return found

    def note(self, text: str) -> None:
        """Add a part of the row's evidence."""
        self.notes.append(text)
        self.app.on_event(Event(text))

    def miss(self, why: str) -> None:
        """Record that the fault proves nothing, as it did not hit what it is meant for."""
        self.missed.append(why)

    def begin_fault(self) -> None:
        """Remember the state of the coordinators' log: what comes later is the fault's. Raise EosctlError."""
        self.missed.clear()
        self.transactions = self._transactions()

    def _transactions(self) -> TransactionCounts:
        return read_transaction_counts(self.app_now(timeout_s=_LOOK_S), self.group, self.connector)

    def require_traces(self, tasks: list[int], *, aborted: bool = False) -> None:
        """Record a miss unless the log shows that each task's transactional id was initialized since the fault's begin.

        `aborted`: a transaction of one of them must have been aborted, too.
        """
        if not tasks:
            self.miss("no task was seen that it could end")
            return
        missing = list[str]()
        for _ in Deadline.after(_TRACES_S, self.app.clock).rounds(_POLL_S):
            try:
                now = self._transactions()
            except InterruptedByUserError:
                raise
            except EosctlError as exc:
                missing = [f"the coordinators' log was not read: {exc.message}"]
                continue
            missing = list(self._missing_traces(now, tasks, aborted=aborted))
            if not missing:
                seen = sum((now.aborted - self.transactions.aborted).values())
                self.note(
                    f"the log shows new producer epochs of {_named(tasks)}, {counted(seen, 'transaction')} aborted"
                )
                return
        for each in missing:
            self.miss(each)

    def _missing_traces(self, now: TransactionCounts, tasks: list[int], *, aborted: bool) -> Iterator[str]:
        for task in tasks:
            if now.initialized[task] <= self.transactions.initialized[task]:
                yield f"the log does not show that the transactional id of task {task} was initialized again"
        if aborted and not any(now.aborted[task] > self.transactions.aborted[task] for task in tasks):
            yield "the log shows no aborted transaction"

    def all_tasks(self) -> list[int]:
        """Return the numbers of the present tasks."""
        status = self.status()
        return [task.task for task in status.tasks] if status else []

    def log_ends(self) -> dict[Place, int]:
        """Read the end of every partition's log; raise EosctlError."""
        app = self.app_now()
        with app.transactions() as admin:
            topics = admin.topic_partitions()
        with app.topics() as store:
            bounds = store.bounds_of(topics, partitions=topics)
        return {(topic, each.partition): each.end for topic, found in bounds.items() for each in found}

    def await_first_offset(self) -> None:
        """Wait a while until the connector has committed a source offset: before, its health is unknown."""
        for _ in Deadline.after(_FIRST_OFFSET_S, self.app.clock).rounds(_AGAIN_S):
            offsets = self._source_offsets()
            if offsets is not None and offsets.commits:
                return
        self.note(f"no source offset was committed in the first {_FIRST_OFFSET_S:g} s")

    def await_snapshot(self) -> None:
        """Wait until no snapshot is under way, as a fault would make it begin again; raise DeadlineError."""
        snapshots: tuple[str, ...] = ()
        for _ in self.app_now().deadline.rounds(_AGAIN_S):
            offsets = self._source_offsets()
            if offsets is not None and not offsets.snapshots:
                return
            snapshots = offsets.snapshots if offsets else ()
        what = f"a snapshot of {snapshots[0]} is under way" if snapshots else "the source offsets can't be read"
        raise DeadlineError(
            f"{what}, still so after {self.app.deadline.timeout_s:g} s",
            hint="Give it longer with --timeout, or a smaller source: a snapshot that a fault interrupts begins again.",
        )

    def _source_offsets(self) -> SourceOffsets | None:
        """Read the source offsets; return None if they can't be read now."""
        try:
            return read_source_offsets(self.app_now(timeout_s=_LOOK_S), self.connector)
        except InterruptedByUserError:
            raise
        except EosctlError:
            return None

    def workers(self) -> list[Node]:
        """Return the workers that run and are not frozen."""
        nodes = [node for node in self.stack.state.of_kind("worker") if node.group_id == self.group]
        return [node for node in nodes if node.process.alive() and node.name not in self.frozen]

    def app_now(self, *, timeout_s: float | None = None) -> App:
        """Return the App with the workers that answer, and a deadline that begins now."""
        target = replace(self.app.target, connect_urls=tuple(node.address for node in self.workers()))
        patience_s = self.app.deadline.timeout_s if timeout_s is None else timeout_s
        return replace(self.app, target=target, deadline=Deadline.after(patience_s, self.app.clock))

    def status(self) -> ConnectorEntry | None:
        """Read the connector from the first worker that answers; return None if none does, or none knows it."""
        app = self.app_now(timeout_s=_LOOK_S)
        for url in app.target.connect_urls:
            try:
                found = app.worker(url).connectors().get(self.connector)
            except EosctlError:
                continue
            if found is not None:
                return found
        return None

    def tasks_of(self, node: Node) -> list[int]:
        """Return the numbers of the tasks that REST reports on a worker."""
        status = self.status()
        here = worker_id_of_url(node.address)
        return [task.task for task in status.tasks if task.worker_id == here] if status else []

    def busy_worker(self) -> Node:
        """Choose one of the workers that have a task of the connector; any worker if none has."""
        workers = self.workers()
        busy = [node for node in workers if self.tasks_of(node)]
        return self.choose.choice(busy or workers)

    def is_well(self) -> bool:
        """Decide whether every task runs on a present worker, and the group has exactly these workers."""
        workers = self.workers()
        here = {worker_id_of_url(node.address) for node in workers}
        status = self.status()
        return status is not None and runs(status, here) and self._is_settled(len(workers))

    def _is_settled(self, workers: int) -> bool:
        try:
            group, _cluster_id = read_group(self.app_now(timeout_s=_LOOK_S), gone_ok=True, wait=False)
        except EosctlError:
            return False
        return group.state == STABLE and len(group.members) == workers

    def why_ill(self) -> str:
        """Describe the connector's state, for the error of a wait."""
        status = self.status()
        return "no worker shows the connector" if status is None else status.in_words()

    def await_well(self, *, within_s: float, ready: Callable[[], bool]) -> float:
        """Wait until all is well and stays so; return since when, in the clock's monotonic time.

        Raises DeadlineError, and EosctlError at once for a task that can never run: a class that it needs is missing.
        """
        clock = self.app.clock
        deadline = Deadline.after(within_s, clock)
        since_s: float | None = None
        for _ in deadline.rounds(_POLL_S):
            now_s = clock.monotonic_s()
            self._refuse_broken_plugin()
            if not (self.is_well() and ready()):
                since_s = None
            elif since_s is None:
                since_s = now_s
            elif now_s - since_s >= _STAYS_WELL_S:
                return since_s
        raise DeadlineError(f"not well again within {within_s:g} s: {self.why_ill()}")

    def _refuse_broken_plugin(self) -> None:
        status = self.status()
        for part in status.parts() if status else ():
            if part.state == FAILED and (error := _LINKAGE_ERROR.search(part.trace)):
                raise EosctlError(
                    f"{self.connector} can't run on Kafka's classes of this version ({error[0]}): {self.why_ill()}",
                    hint="Take a version of the plugin that is made for this Kafka, or another --kafka-version.",
                )

    def wait_for(self, what: str, done: Callable[[], bool]) -> None:
        """Poll until `done`; raise DeadlineError naming `what`."""
        for _ in self.app_now().deadline.rounds(_POLL_S):
            if done():
                return
        raise DeadlineError(
            f"timed out after {self.app.deadline.timeout_s:g} s while waiting for {what}; {self.why_ill()}"
        )

    def await_open_transaction(self, tasks: list[int]) -> bool:
        """Wait a little for an open transaction of one of these tasks; return whether there is one."""
        app = self.app_now(timeout_s=_LOOK_S)
        if not tasks:
            return False
        with app.transactions() as admin:
            for _ in Deadline.after(_OPEN_TRANSACTION_S, app.clock).rounds(_GLANCE_S):
                if self._has_open_transaction(admin, tasks):
                    return True
        return False

    def freeze_in_transaction(self, node: Node, tasks: list[int]) -> bool:
        """Stop a worker by SIGSTOP while one of its tasks has an open transaction, which then stays open.

        False, and the worker goes on, where that does not succeed in time: transactions may be short.
        """
        app = self.app_now()
        if not tasks:
            return False
        with app.transactions() as admin:
            for _ in Deadline.after(_FREEZES_S, app.clock).rounds(_GLANCE_S):
                if not self._has_open_transaction(admin, tasks):
                    continue
                process.signal_group(node.process, signal.SIGSTOP)
                app.clock.sleep_s(_UNDER_WAY_S)
                if self._has_open_transaction(admin, tasks):
                    return True
                process.signal_group(node.process, signal.SIGCONT)
        return False

    def _has_open_transaction(self, admin: TransactionAdmin, tasks: list[int]) -> bool:
        ids = [task_transactional_id(self.group, self.connector, task) for task in tasks]
        return any(_is_open(each) for each in admin.describe_transactions(ids).values())


def _named(tasks: list[int]) -> str:
    return f"task{'s' * (len(tasks) != 1)} {', '.join(map(str, tasks))}" if tasks else "no task"


def runs(status: ConnectorEntry, workers: set[WorkerId]) -> bool:
    """Decide whether connector and tasks run on these workers, with all tasks of the newest task set, at least one."""
    tasks = tuple(task.task for task in status.tasks)
    places = {part.worker_id for part in status.parts()}
    states = {part.state for part in status.parts()}
    return bool(tasks) and tasks == status.wanted and states == {RUNNING} and places <= workers


def _is_open(answer: object) -> bool:
    return not isinstance(answer, KafkaFault) and getattr(answer, "state", None) == TransactionState.ONGOING
