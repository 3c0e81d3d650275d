"""The rights that are needed, and their principals: from the user's options, the worker files and the config topic.

The group's connectors, as far as rights need them, come from the config topic, else from a worker. Reads only; the ACLs
themselves are examined in acls/check.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from eosctl.acls import codes
from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown
from eosctl.connectors.topics import ConnectorTopics, FoundTopics, find_topics
from eosctl.core.acls.lines import AclRequest
from eosctl.core.acls.table import (
    APPLICATION_ROLE,
    CONNECT_ROLES,
    ROLES,
    ApplicationProduct,
    ApplicationScope,
    ConnectorScope,
    GroupScope,
    Right,
    application_rights,
    required_rights,
)
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.java.properties import java_number
from eosctl.core.offsets.names import PLACE
from eosctl.core.wording import counted, is_topic_name
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.errors import EosctlError, InputFileError, NotFoundError, UsageError
from eosctl.group.absent import read_config_topic
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import in_turn, no_answer
from eosctl.report import Problem


class KnownConnectors(Struct, frozen=True):
    """By name; None where they were not read, or could not be."""

    connectors: Mapping[str, ConnectorState] | None = None

    def config(self, name: str) -> Mapping[str, object]:
        """Return the connector's configuration; empty where it is not known."""
        state = (self.connectors or {}).get(name)
        return (state.config or {}) if state else {}

    def sources(self) -> tuple[str, ...]:
        """Return the names of the source connectors that are not deleted."""
        return tuple(
            sorted(name for name in self.connectors or {} if plugin_type(self.config(name) or None) == "source")
        )

    def task_count(self, name: str) -> int:
        """Return how many tasks `name` may have, has, or had, whichever is most. Raises NotFoundError, UsageError."""
        if self.connectors is None:
            raise UsageError(
                f"how many tasks has {name}?",
                hint="Give --tasks N, or name the cluster (-b) or a worker (-u) to look it up.",
            )
        state = self.connectors.get(name)
        if state is None:
            raise NotFoundError(f"the group has no connector {name}", hint="Give --tasks N for one that is to come.")
        most = java_number(self.most_tasks(name))
        return max(most if most is not None else 1, state.task_count or 0, state.task_count_record or 0)

    def most_tasks(self, name: str) -> str:
        """Return the connector's tasks.max, as its config spells it."""
        return str(self.config(name).get("tasks.max", "1"))


def _read_connectors(app: App, problems: list[Problem]) -> Mapping[str, ConnectorState]:
    """Read the connectors by name; a worker that is asked in the config topic's place leaves a problem.

    Raises what reading the config topic raises, and the error made by `no_answer`.
    """
    if app.target.client is None and app.target.connect_urls:
        found = _ask_workers(app)
        unread: EosctlError = UsageError("no Kafka cluster was named", hint="Name it with -b.")
    else:
        try:
            with app.topics() as store:
                return read_config_topic(app, store).state.connectors
        except EosctlError as exc:
            unread = exc
        try:
            found = _ask_workers(app)
        except EosctlError:
            raise unread from None
    message = f"the connectors are as a worker reports them, which knows no task-count record: {unread.message}"
    problems.append(Problem(codes.CONNECTORS_UNKNOWN, message, hint=unread.hint, unseen=True))
    return found


def _ask_workers(app: App) -> Mapping[str, ConnectorState]:
    """Return the connectors that the first answering worker of the named ones reports."""
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, app.target.connect_urls):
        try:
            entries = connectors_of(app, worker)
        except EosctlError as exc:
            failures.append(exc)
        else:
            return {
                name: ConnectorState(name, entry.config, task_count=len(entry.wanted))
                for name, entry in entries.items()
            }
    raise no_answer("no worker reports the connectors", failures)


_WORKER_TOPICS = {
    "config_topic": ("config.storage.topic", "Name it with --config-topic."),
    "offset_topic": ("offset.storage.topic", "Name it with --offset-topic."),
    "status_topic": ("status.storage.topic", "Name it in a profile: eosctl profile set NAME status_topic=TOPIC."),
}
_ABOUT_OUTPUTS = {"producer", "consumer", "admin", "observer", "aborter", "acl-writer"}


class WantedRights(Struct, frozen=True):
    """Rights, and who should have them: role -> principal, as far as that is known."""

    rights: Sequence[Right]
    principals: Mapping[str, str]
    problems: Sequence[Problem] = ()

    def require_principals(self) -> Mapping[str, str]:
        """Return the principals; raises UsageError for a role without one."""
        _require_principals(self.rights, self.principals)
        return self.principals


def _require_principals(rights: Iterable[Right], principals: Mapping[str, str]) -> None:
    for right in rights:
        if right.role not in principals:
            raise UsageError(
                f"no principal given for role {right.role}",
                hint=f"Give --principal {right.role}=User:NAME, or the worker's file (-w), which names it.",
            )


def gather_wanted(
    app: App,
    request: AclRequest,
    *,
    look: bool,
    named: bool = False,
    connectors: Mapping[str, ConnectorState] | None = None,
) -> WantedRights:
    """Return the rights that `request` needs.

    With `look`, connectors are looked up where a cluster or a worker was named: their tasks and offsets topics in the
    config topic, else at a worker; the topics that they write to at a worker and in their configs. Without it, they
    are looked up only where the request does not give the number of tasks, and never where the caller passes them
    (`connectors`). With `named`, a role without a principal is an error before a worker is asked for topics.
    Raises UsageError, NotFoundError, and what reading the config topic raises.
    """
    if request.product is not None or request.applications:
        return _of_applications(app, request)
    group_id = app.target.require_group_id()
    roles = request.roles or CONNECT_ROLES
    principals = _principals(app, request, roles)
    scope = GroupScope(
        group_id, app.target.config_topic, app.target.offset_topic, app.target.status_topic,
        prefixed=request.prefixed, old_brokers=request.old_brokers,
    )  # fmt: skip
    problems: list[Problem] = []
    known = KnownConnectors(connectors or _look_up(app, request, problems, look=look))
    names = known.sources() if request.every else request.connectors
    if named:
        _require_principals(required_rights(scope, roles, mode=request.mode), principals)
    counts = _task_counts(request, names, known)
    outputs = _outputs(app, request, roles, {name: known.config(name) for name in names}) if look else FoundTopics()
    scopes = tuple(
        _scope_of(app, request, known, name, count, outputs.of.get(name) or ConnectorTopics(request.output_topics))
        for name, count in zip(names, counts, strict=True)
    )
    problems += outputs.problems
    if not request.tasks and not request.prefixed:
        of_tasks = zip(names, counts, strict=True)
        problems += [
            _tasks_unknown(known, *each) for each in of_tasks if java_number(known.most_tasks(each[0])) is None
        ]
    problems += [_offsets_topic_unknown(known, scope.name) for scope in scopes if scope.offsets_topic is None]
    problems += [_elsewhere(name) for name in names if CLUSTER_PROPERTY in known.config(name)]
    rights = required_rights(replace(scope, connectors=scopes), roles, mode=request.mode)
    _require_topic_names(app, rights)
    return WantedRights(rights, principals, problems)


def _of_applications(app: App, request: AclRequest) -> WantedRights:
    """Return the rights of Kafka Streams or Flink applications, without looking anything up. Raises UsageError."""
    if request.product is None or not request.applications or "" in request.applications:
        raise UsageError("--for and --application go together", hint="For example --for streams --application billing.")
    given = (request.connectors, request.tasks, request.every, request.roles, request.dedicated_topic, request.prefixed)
    if any(given):
        raise UsageError(f"--for {request.product} takes no options of Connect's: connectors, tasks and roles")
    if request.groups and request.product == "streams":
        raise UsageError("the group of a Streams application is its application.id", hint="Leave out --consumer-group.")
    product = cast("ApplicationProduct", request.product)
    scopes = [
        ApplicationScope(
            product, name, request.input_topics, request.output_topics, request.groups, request.old_brokers
        )
        for name in request.applications
    ]
    rights = application_rights(scopes)
    for right in rights:
        if right.resource_type == "Topic" and not is_topic_name(right.name):
            raise UsageError(f"{right.name} can't be a topic, so there is no right on it")
    problems = [] if request.input_topics and request.output_topics else [_topics_not_named(request)]
    return WantedRights(rights, _principals(app, request, (APPLICATION_ROLE,)), problems)


def _topics_not_named(request: AclRequest) -> Problem:
    lacking = [
        option
        for option, topics in (("--input-topic", request.input_topics), ("--output-topic", request.output_topics))
        if not topics
    ]
    return Problem(
        connector_codes.OUTPUT_TOPICS_UNKNOWN,
        f"without {' and '.join(lacking)}, rights on these topics are not part of this",
        hint="Name them; NAME* is a prefix.",
        unseen=len(lacking) == 2,  # an application may only read, or only write
    )


def _look_up(
    app: App, request: AclRequest, problems: list[Problem], *, look: bool
) -> Mapping[str, ConnectorState] | None:
    """Read the connectors where they are needed. A failure to read is a problem, unless nothing else names them."""
    needed = request.every or bool(request.connectors and not request.tasks and not request.prefixed)
    if not needed and not (look and request.connectors):
        return None
    if app.target.client is None and not app.target.connect_urls and not request.every:
        return None
    try:
        return _read_connectors(app, problems)
    except EosctlError as exc:
        if needed:
            raise
        message = f"what the connectors' configurations say is not known: {exc.message}"
        problems.append(Problem(codes.CONNECTORS_UNKNOWN, message, hint=exc.hint, unseen=True))
        return None


def _require_topic_names(app: App, rights: Iterable[Right]) -> None:
    """Raise UsageError for a topic that only a worker can name, by a reference in its file that no option replaces."""
    guessed = {
        getattr(app.target, name): (setting, hint)
        for name, (setting, hint) in _WORKER_TOPICS.items()
        if app.target.origins.get(name) == "default"
        and any(setting in file.unresolved for file in app.target.worker_configs)
    }
    for right in rights:
        if right.resource_type != "Topic" or right.name == "*":
            continue
        if right.name in guessed:
            setting, hint = guessed[right.name]
            raise UsageError(f"a right is needed on the {setting}, which only a worker can resolve", hint=hint)
        if not is_topic_name(right.name):
            raise UsageError(f"{right.name} can't be a topic, so there is no right on it")


def _task_counts(request: AclRequest, names: Sequence[str], known: KnownConnectors) -> Sequence[int]:
    """Return how many tasks each connector may have; 0 where a prefix covers the ids."""
    if len(request.tasks) not in (0, 1, len(names)):
        raise UsageError(
            f"{len(request.tasks)} times --tasks for {len(names)} connectors",
            hint="Give --tasks once for all, or once for each --connector, in the same order.",
        )
    if request.tasks:
        return request.tasks if len(request.tasks) == len(names) else request.tasks * len(names)
    return [0 if request.prefixed else known.task_count(name) for name in names]


def _tasks_unknown(known: KnownConnectors, connector: str, count: int) -> Problem:
    return Problem(
        codes.TASKS_UNKNOWN,
        f"{connector}: tasks.max is {known.most_tasks(connector)}, which only its worker can resolve, or which is no "
        f"number: rights are for {counted(count, 'task')}, and there may be more",
        hint=codes.TASKS_UNKNOWN.next,
        unseen=True,
    )


def _scope_of(
    app: App, request: AclRequest, known: KnownConnectors, name: str, tasks: int, topics: ConnectorTopics
) -> ConnectorScope:
    """Return the connector's part of the rights' scope."""
    return ConnectorScope(
        name, tasks, _offsets_topic(app, request, known, name), topics.written, topics.likely,
        own_reads=topics.own_reads, own_writes=topics.own_writes,
    )  # fmt: skip


def _offsets_topic(app: App, request: AclRequest, known: KnownConnectors, name: str) -> str | None:
    """Return the topic that holds the connector's offsets: its own, else the worker's.

    None where its config has something that can't be a topic, such as a placeholder, and the request names none.
    """
    own = known.config(name).get(TOPIC_PROPERTY)
    if isinstance(own, str) and is_topic_name(own):
        return own
    if own and request.dedicated_topic is None:
        return None
    return (request.dedicated_topic or app.target.offset_topic).replace(PLACE, name)


def _outputs(
    app: App, request: AclRequest, roles: Sequence[str], configs: Mapping[str, Mapping[str, object]]
) -> FoundTopics:
    """Find the topics that the connectors write to, unless they were named or no role needs them."""
    if not configs or request.output_topics or not _ABOUT_OUTPUTS & set(roles):
        return FoundTopics()
    if app.target.client is None and not app.target.connect_urls:
        return FoundTopics({}, (_outputs_unknown(),))
    return find_topics(app, configs)


def _principals(app: App, request: AclRequest, roles: Sequence[str]) -> Mapping[str, str]:
    """Return each role's principal: the one named for the role, else for all, else the one in the worker's file."""
    named: dict[str, str] = {}
    for text in request.principals:
        role, equals, principal = text.partition("=")
        if not equals or role not in (*ROLES, APPLICATION_ROLE):  # a distinguished name has equals signs of its own
            role, principal = "", text
        if ":" not in principal or principal.endswith(":"):
            raise UsageError(f"{principal!r} is no principal", hint="Write it as Kafka does: User:orders.")
        named[role] = principal
    found = {role: named.get(role) or named.get("") or _in_worker_file(app, role) for role in roles}
    return {role: principal for role, principal in found.items() if principal}


def _in_worker_file(app: App, role: str) -> str | None:
    """Return the SASL user of one of the worker's clients; None without a file that has it."""
    if role not in CONNECT_ROLES or not app.target.worker_configs:
        return None
    try:
        settings = app.target.worker_configs[0].client("" if role == "worker" else f"{role}.").settings
    except InputFileError:  # stores that only Java can read: the principal is not known, and asked for
        return None
    return f"User:{settings.sasl_username}" if settings.sasl_username else None


def _outputs_unknown() -> Problem:
    return Problem(
        connector_codes.OUTPUT_TOPICS_UNKNOWN,
        "the topics that the connectors write to are not known, and rights on them are not part of this",
        hint="Name a worker (-u) or the cluster (-b) to look them up, or the topics: --output-topic NAME; NAME* is a "
        "prefix.",
        unseen=True,
    )


def _offsets_topic_unknown(known: KnownConnectors, connector: str) -> Problem:
    value = str(known.config(connector).get(TOPIC_PROPERTY))
    return Problem(
        connector_codes.DEDICATED_TOPICS_UNKNOWN,
        f"{describe_unknown(connector, value)}; rights on it are not part of this",
        hint="Name it with --dedicated-topic NAME.",
        unseen=True,
    )


def _elsewhere(connector: str) -> Problem:
    return Problem(
        connector_codes.OTHER_CLUSTER,
        f"{connector} writes to another cluster ({CLUSTER_PROPERTY}): the rights of its clients belong there",
        hint=f"Run the same with -b of that cluster, --connector {connector} and --tasks N.",
        unseen=True,
    )
