"""The input of `fence`: the ids that a request selects, and their connectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import Owner, TransactionalId, task_transactional_ids
from eosctl.errors import EosctlError, NotFoundError, UsageError
from eosctl.fence import codes
from eosctl.fence.rules import unique_ids
from eosctl.foreign import shell_word
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.connectors.elsewhere import OtherCluster
    from eosctl.core.configs.fold import ConnectorState


class FenceRequest(Struct, frozen=True):
    """The selection of ids; `tasks` overrides the task-count record of `connector`; `via`: native, connect or producer.

    `live`, `unknown_liveness`, `discard_prepared`, `allow_leader` and `create_unknown` waive one check each.
    """

    transactional_ids: tuple[TransactionalId, ...] = ()
    prefix: str | None = None
    pattern: str | None = None
    connector: str | None = None
    tasks: int | None = None
    live: bool = False
    unknown_liveness: bool = False
    discard_prepared: bool = False
    allow_leader: bool = False
    create_unknown: bool = False
    via: str = "native"


class Gathered(Struct, frozen=True):
    """The ids in a stable order; `task_count_record` is set where the ids were derived from it.

    `at` is the Kafka cluster of the ids, if the connector has one of its own.
    """

    ids: Sequence[TransactionalId]
    task_count_record: int | None = None
    connector_of: Mapping[TransactionalId, Owner] = {}
    connectors: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    at: OtherCluster | None = None


def gather_ids(app: App, request: FenceRequest, known: Mapping[str, ConnectorState] | None = None) -> Gathered:
    """Return all ids that the request selects, each once: given ones, then those found by name, then the connector's.

    `known` are the connectors of the config topic, if it has just been read.
    Raises UsageError for an empty or contradictory request, NotFoundError for a connector without a record.
    """
    _check(request)
    ids = list(request.transactional_ids)
    problems: list[Problem] = []
    if request.prefix is not None or request.pattern is not None:
        from eosctl.txn.report import hidden_ids_warning

        matching, missing = _matching_ids(app, _matcher(request))
        problems = [*hidden_ids_warning(app, matching), *missing]
        ids += matching
    if request.connector is None:
        return Gathered(unique_ids(ids), problems=tuple(problems))
    return _with_connector(app, request, request.connector, known, (ids, problems))


def _check(request: FenceRequest) -> None:
    if request.tasks is not None and request.connector is None:
        raise UsageError("--tasks belongs to --connector", hint="Name the connector whose tasks 0 to N-1 are meant.")
    named = (request.prefix, request.pattern, request.connector)
    if not request.transactional_ids and all(name is None for name in named):
        raise UsageError(
            "no transactional id was named",
            hint="Give ids, --from-file, --prefix, --match or --connector; `eosctl txn list` shows what there is.",
        )
    if "" in request.transactional_ids or request.prefix == "" or request.connector == "":
        raise UsageError("an empty transactional id, prefix or connector name matches nothing, or too much")


def _matcher(request: FenceRequest) -> Callable[[str], bool]:
    """Return a predicate for the prefix and the pattern, if given; the pattern must match the whole id."""
    try:
        pattern = re.compile(request.pattern if request.pattern is not None else ".*", re.DOTALL)
    except re.error as exc:
        raise UsageError(f"--match {request.pattern!r} is not a regular expression: {exc}") from exc
    prefix = request.prefix or ""
    return lambda transactional_id: transactional_id.startswith(prefix) and bool(pattern.fullmatch(transactional_id))


def _matching_ids(app: App, matches: Callable[[str], bool]) -> tuple[list[TransactionalId], list[Problem]]:
    """List the ids that match, of all that this principal may see; filter here, as brokers before 4.1 can't.

    Return also a problem for each coordinator that can't be asked, as there may be more ids.
    """
    from eosctl.txn.report import missing_ids_problems

    with app.transactions() as admin:
        listings = admin.list_transactions()
    ids = sorted(each.transactional_id for each in listings.found if matches(each.transactional_id))
    return ids, missing_ids_problems(listings)


def _with_connector(
    app: App,
    request: FenceRequest,
    connector: str,
    known: Mapping[str, ConnectorState] | None,
    found: tuple[list[TransactionalId], list[Problem]],
) -> Gathered:
    from eosctl.connectors.elsewhere import cluster_of_ids

    group_id, (ids, problems) = app.target.require_group_id(), found
    recorded, connectors = None, frozenset[str]()
    if request.tasks is None:
        known = known or recorded_connectors(app)
        connectors = frozenset(known)
        recorded = recorded_count(known, connector)
        count = _require_count(app, connector, recorded)
    else:
        with suppress(EosctlError):  # with --tasks it need not be read
            known = recorded_connectors(app)
        count = request.tasks
        tasks = {0: "no task", 1: "task 0"}.get(count, f"tasks 0 to {count - 1}")
        message = f"fencing {tasks} of {connector}: the number is from --tasks, not from the task-count record"
        problems.append(Problem(codes.TASK_COUNT_OVERRIDDEN, message))
    at = cluster_of_ids(app, connector, known[connector].config if known and connector in known else None)
    if at is not None and ids:
        raise UsageError(
            f"{connector} writes to another Kafka cluster, where its transactional ids are",
            hint="Fence them apart: --connector alone.",
        )
    derived = task_transactional_ids(group_id, connector, count)
    owners = {transactional_id: Owner("task", connector, task) for task, transactional_id in enumerate(derived)}
    return Gathered(unique_ids([*ids, *derived]), recorded, owners, connectors, tuple(problems), at)


def _require_count(app: App, connector: str, count: int | None) -> int:
    if count is None:
        from eosctl.group.absent import require_ever_there

        require_ever_there(app)
        raise NotFoundError(
            f"connector {connector} has no task-count record in topic {app.target.config_topic}: "
            "Connect itself would fence none of its ids",
            hint=f"Give --tasks N to fence the ids of tasks 0 to N-1, or see "
            f"`eosctl txn list --match {shell_word(f'{app.target.group_id}-{connector}-.*')}`.",
        )
    return count


def recorded_connectors(app: App) -> Mapping[str, ConnectorState]:
    """Return the connectors of the config topic as it is now; raises NotFoundError when there is none."""
    from eosctl.group.topics.config import read_config_topic

    with app.topics() as store:
        return read_config_topic(app, store).state.connectors


def recorded_count(connectors: Mapping[str, ConnectorState], name: str) -> int | None:
    """Return the newest task-count record of a connector."""
    return connectors[name].task_count_record if name in connectors else None
