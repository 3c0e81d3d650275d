"""`eosctl sandbox`: up, status, logs, down of a named stack below the state directory; its rights, and a zombie.

A secured sandbox has a user per role, named like it, and the rights that each of them needs before any connector. What
a connector needs is granted by `eosctl acls apply`, as on any cluster.

The zombie is for practice: a real producer that holds a transactional id and an open transaction.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eosctl.acls.rules import acl_of
from eosctl.core.acls.table import CONNECT_ROLES, ROLES, GroupScope, required_rights
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event, OnEvent
from eosctl.errors import EosctlError, NotFoundError, RefusedError
from eosctl.foreign import shell_word
from eosctl.machine.files import open_own, own_folder
from eosctl.output.rows import Kind
from eosctl.report import Report
from eosctl.sandbox.login import SUPER_USER, SecureListener
from eosctl.sandbox.rows import (
    SANDBOX_DOWN,
    SANDBOX_LOGS,
    SANDBOX_STATUS,
    SANDBOX_UP,
    DownSummary,
    FoundSandbox,
    LogFiles,
    LogLine,
    NodeRow,
    PrincipalPart,
    StatusSummary,
)
from eosctl.sandbox.servers.launcher import log_tail
from eosctl.sandbox.servers.process import Node
from eosctl.sandbox.settings import DEFAULT_VERSION, GroupSpec, StackSpec, connectors_version, supported_versions
from eosctl.sandbox.stack import START_TIMEOUT_S, Stack
from eosctl.state.audit_file import lock_now

_GRANT_TIMEOUT_S = 30.0
# the worker's properties that begin so are of its connectors' clients
_USERS = {"" if role == "worker" else f"{role}.": role for role in CONNECT_ROLES}


def secured(spec: StackSpec, listener: SecureListener | None = None) -> StackSpec:
    """Put the stack behind TLS, SCRAM and an authorizer: every Connect client logs in as the user of its role."""
    groups = tuple(replace(group, users=_USERS) for group in spec.groups)
    return replace(spec, groups=groups, secure=listener or SecureListener.with_users(ROLES))


def grant_roles(stack: Stack, groups: tuple[GroupSpec, ...]) -> None:
    """Grant every role the rights that the groups alone need, without connectors. Wait until the brokers know them."""
    from eosctl.kafka.acls import KafkaAclClient

    acls = {acl_of(right, f"User:{right.role}") for group in groups for right in required_rights(_scope(group), ROLES)}
    deadline = Deadline.after(_GRANT_TIMEOUT_S)
    with KafkaAclClient(stack.client_settings(), deadline=deadline) as store:
        for error in store.create(acls).values():
            raise error
        for _ in deadline.rounds(0.1):
            if acls <= set(store.describe()):
                return
    raise deadline.passed("waiting for the brokers to know the sandbox's ACLs")


def _scope(group: GroupSpec) -> GroupScope:
    topics = group.topics()
    return GroupScope(group.group_id, topics["config"], topics["offset"], topics["status"])


def up_sandbox(
    state_dir: Path,
    name: str,
    *,
    kafka_version: str | None,
    modes: Sequence[str],
    secure: bool = False,
    metrics: bool = False,
    environ: Mapping[str, str],
    on_event: OnEvent,
    start_timeout_s: float | None,
) -> Report:
    """Start a broker and one worker per mode; refuse if a stack of that name already runs.

    `secure` puts them behind TLS, SCRAM and an authorizer, with a user per role; `metrics` gives each worker a port
    where a Prometheus may read.
    `kafka_version` None is the newest with its own connectors; one without a lock file raises UsageError.
    """
    directory = _directory(state_dir, name)
    group = GroupSpec(modes=tuple(Mode(mode) for mode in modes))
    spec = StackSpec(
        kafka_version=kafka_version or DEFAULT_VERSION, groups=(group,), metrics=metrics,
        rest_login=True, broker_login=secure,
    )  # fmt: skip
    spec = secured(spec) if secure else spec
    if os.geteuid() == 0 and not secure:
        on_event(Event("Each user of this machine can use its brokers, and run connectors as root: see --secure."))
    with _alone(state_dir, name):
        there = Stack.find(directory)
        if there is not None and there.alive():
            of_it = f"--name {shell_word(name)}"
            hint = f"See it: `eosctl sandbox status {of_it}`; stop it: `eosctl sandbox down {of_it}`"
            raise RefusedError(f"the sandbox {name} is already up", hint=hint)
        shutil.rmtree(directory, ignore_errors=True)  # logs of a start that failed
        stack = Stack.up(
            spec, directory, name=name, environ=environ, on_event=on_event,
            start_timeout_s=START_TIMEOUT_S if start_timeout_s is None else start_timeout_s,
            before_workers=(lambda stack: grant_roles(stack, spec.groups)) if secure else None,
        )  # fmt: skip
    return _report(SANDBOX_UP, stack)


def sandbox_status(state_dir: Path, name: str) -> Report:
    """Report what is known of the stack and which of its processes run; without a stack, no rows."""
    stack = Stack.find(_directory(state_dir, name))
    if stack is None:
        return Report(kind=SANDBOX_STATUS, summary=StatusSummary(name=name, up=False), data=FoundSandbox())
    return _report(SANDBOX_STATUS, stack)


def sandbox_logs(state_dir: Path, name: str, *, node: str | None, lines: int) -> Report:
    """Report the last lines of one node's log, or of every node's; raise NotFoundError without a stack."""
    stack = Stack.find(_directory(state_dir, name))
    if stack is None:
        raise NotFoundError(f"there is no sandbox {name}", hint="Start one: eosctl sandbox up")
    nodes = [stack.node(node)] if node else stack.state.nodes
    rows = [LogLine(node=each.name, line=line) for each in nodes for line in log_tail(Path(each.log), lines)]
    return Report(kind=SANDBOX_LOGS, rows=rows, data=LogFiles(files={each.name: each.log for each in nodes}))


def down_sandbox(state_dir: Path, name: str) -> Report:
    """Stop what runs and remove the files; accept that there is nothing to do."""
    directory = _directory(state_dir, name)
    with _alone(state_dir, name):
        stack = Stack.find(directory)
        stopped = [node.name for node in stack.state.nodes if node.process.alive()] if stack else []
        if stack is not None:
            stack.down()
        shutil.rmtree(directory, ignore_errors=True)
    return Report(kind=SANDBOX_DOWN, summary=DownSummary(name=name, stopped=stopped))


@contextmanager
def _alone(state_dir: Path, name: str) -> Iterator[None]:
    """Hold the sandbox's lock file; raise RefusedError while another eosctl starts or stops this sandbox."""
    try:
        path = own_folder(state_dir, "sandbox") / f".{name}.lock"
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check space and rights.")
        raise EosctlError(f"cannot keep a sandbox in {state_dir}: {exc.strerror or exc}", hint=hint) from exc
    try:
        if not lock_now(descriptor):
            raise RefusedError(
                f"another eosctl is starting or stopping the sandbox {name}", hint="Wait for it, or give --name."
            )
        yield
    finally:
        os.close(descriptor)


def _directory(state_dir: Path, name: str) -> Path:
    return state_dir / "sandbox" / name


def _other_than(kafka_version: str) -> str | UnsetType:
    """Return the version of Kafka's own connectors if it is another one; a lock of former times may be gone."""
    known = kafka_version in supported_versions()
    return version if known and (version := connectors_version(kafka_version)) != kafka_version else UNSET


def _report(kind: Kind, stack: Stack) -> Report:
    groups, version = list(stack.state.topics), stack.state.kafka_version
    configs = stack.state.command_configs
    return Report(
        kind=kind,
        rows=[_row(node) for node in stack.state.nodes],
        summary=kind.summary(
            name=stack.state.name, up=stack.alive(), kafka_version=version, connectors_version=_other_than(version)
        ),
        data=kind.data(
            environ=_environ(stack, groups),
            directory=stack.state.directory,
            topics=stack.state.topics,
            principals=[
                PrincipalPart(principal=f"User:{user}", command_config=config)
                for user, config in sorted(configs.items())
            ],
        ),
        target={"group_id": groups[0] if len(groups) == 1 else None},
    )


def _environ(stack: Stack, groups: Sequence[str]) -> dict[str, str]:
    """Return the variables that point eosctl at the sandbox, at a secured one as the super user."""
    super_user = stack.state.command_configs.get(SUPER_USER)
    servers = stack.secure_bootstrap_servers if super_user else stack.bootstrap_servers
    environ = {"EOSCTL_BOOTSTRAP_SERVER": servers, **stack.login.environ()}
    if super_user:
        environ["EOSCTL_COMMAND_CONFIG"] = super_user
        environ["EOSCTL_WORKER_CONFIG"] = ",".join(node.config for node in stack.state.of_kind("worker"))
    if len(groups) == 1:
        topics = stack.state.topics[groups[0]]
        environ |= {"EOSCTL_CONNECT_URL": ",".join(stack.urls(groups[0])), "EOSCTL_GROUP_ID": groups[0]}
        environ |= {f"EOSCTL_{name.upper()}_TOPIC": topic for name, topic in topics.items()}
    return environ


def _row(node: Node) -> NodeRow:
    return NodeRow(
        node=node.name,
        address=node.secure_address or node.address,
        running=node.process.alive(),
        pid=node.pid,
        group_id=node.group_id,
        mode=node.mode,
        config=node.config,
        log=node.log,
        metrics_url=node.metrics_url,
    )


_PATIENCE_S = 120  # of a loaded machine
_NO_LOGIN: Mapping[str, str] = MappingProxyType({})


class Zombie:
    """A librdkafka producer under `transactional_id` that has written `record` to `topic` and not committed.

    A context manager; `commit()` says how the commit ended, and leaving closes the producer. Sandbox only: taking a
    transactional id over fences whoever holds it.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        transactional_id: str,
        *,
        topic: str,
        record: bytes,
        timeout_ms: int = 600_000,
        login: Mapping[str, str] = _NO_LOGIN,
    ) -> None:
        import logging

        from confluent_kafka import Producer

        silent = logging.Logger("zombie")
        silent.addHandler(logging.NullHandler())
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "enable.metrics.push": False,
            **login,
        }
        self._producer = Producer(settings, logger=silent)
        self._producer.init_transactions(_PATIENCE_S)
        self._producer.begin_transaction()
        self._producer.produce(topic, record, partition=0)
        self._producer.flush(_PATIENCE_S)

    def commit(self) -> str:
        """Try to commit; return `committed` or the name of the error (`_FENCED` once the id was fenced)."""
        from confluent_kafka import KafkaException

        try:
            self._producer.commit_transaction(_PATIENCE_S)
        except KafkaException as exc:
            return str(exc.args[0].name())
        return "committed"

    def __enter__(self) -> Zombie:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        import warnings

        from confluent_kafka import KafkaException

        with warnings.catch_warnings(), contextlib.suppress(KafkaException):
            warnings.simplefilter("ignore")  # closing a fenced producer complains that it could not abort
            self._producer.close()
