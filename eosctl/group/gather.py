"""Observes the workers of a Connect group: who they are, what each runs, and which exactly-once mode is proven.

Read-only. Members and their work come from Kafka's group coordinator; version, health and mode from REST.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.url import is_loopback_url, is_this_machine, normalised, parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, UnauthorizedError, UnreachableError
from eosctl.group import codes
from eosctl.group.addresses import (
    HEALTHY,
    UNHEALTHY,
    Destination,
    Routes,
    classify_url,
    explain_separate_worker,
    routes_of,
    running_workers,
)
from eosctl.group.listing import with_existing_groups
from eosctl.group.members import DEAD, EMPTY, STABLE, ConnectGroup, ConnectMember, KnownNodes, connect_group
from eosctl.group.modes import (
    PARALLEL_WORKERS,
    STANDALONE,
    WORKER_PATIENCE_S,
    RefinedMode,
    WorkerView,
    connectors_at,
    files_of,
    mode_of_files,
    read_worker_file,
    refine_mode,
    root_of,
    view_worker,
)
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.machine.side_by_side import side_by_side
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.ports import ConnectWorker

REBALANCE_PATIENCE_S = 10.0
# A worker answers REST up to a second before it joins its group (seen on 4.3.1), which is unknown (Dead) until then.
_PATIENCE_S = {STABLE: 0.0, EMPTY: 0.0, DEAD: 2.0}
_POLL_S = 0.25
JOIN_PATIENCE_S = 3.0

NO_REST = "is a worker of a dedicated MirrorMaker, which has no REST interface"
NO_REST_HINT = "The group, its topics and its transactions are checked; logs and files have the rest."

_Pair = tuple[ConnectMember | None, str | None]
"""A member and its normalised URL; either may be missing, not both."""


def observe_workers(app: App, *, gone_ok: bool = False) -> GroupObservation:
    """Join the group's members with their workers' REST answers; an unreachable worker is a row too.

    Without a Kafka cluster or a group id, the given URLs alone are asked. A given URL that no member advertises is a
    route to some member (a load balancer, a forwarded port) if its answers show that; else it is listed among the
    members, with the reason as evidence. With `gone_ok`, a group that the coordinator does not know is returned without
    members. Raises UsageError, NotFoundError and the errors of the Kafka connection.
    """
    given = _given_urls(app)
    if given and (app.target.client is None or app.target.group_id is None):
        alone: list[_Pair] = [(None, url) for url in given]
        return GroupObservation(app.target.group_id, None, None, None, None, None, _observe(app, alone, given))
    group, cluster_id = read_group(app, gone_ok=gone_ok)
    routes = routes_of(app, group.members, given)
    pairs: list[_Pair] = [(each, routes.urls.get(each.member_id) or normalised(each.url)) for each in group.members]
    advertised = {url for _member, url in pairs}
    pairs += [(None, url) for url in given if url not in advertised]
    seen_alone = _observe(app, pairs, given, kafka_cluster_id=cluster_id)
    members, proxies = _judge_strangers(app, group, _discard_unproven(app, group, seen_alone, routes, given), given)
    seen = GroupObservation(
        group_id=group.group_id,
        kafka_cluster_id=cluster_id,
        state=group.state,
        protocol=group.protocol or None,
        leader_member_id=group.leader_member_id,
        leader_url=routes.urls.get(group.leader_member_id or "") or normalised(group.leader_url),
        members=members,
        proxies=proxies,
    )
    return seen.named_as(KnownNodes({}))


def read_group(app: App, *, gone_ok: bool = False, wait: bool = True) -> tuple[ConnectGroup, str]:
    """Return the target's Connect group and the Kafka cluster id; with `wait`, give a rebalance a little time to end.

    With `gone_ok`, a group that the coordinator does not know is returned in state Dead: its workers may have been
    stopped long ago. Raises UsageError, NotFoundError, ProtocolError and the errors of the Kafka connection.
    """
    group_id = app.target.require_group_id()
    asked_s = app.clock.monotonic_s()
    with app.transactions() as admin:
        raw = admin.describe_group(group_id)
        while wait and app.clock.monotonic_s() - asked_s < _PATIENCE_S.get(raw.state, REBALANCE_PATIENCE_S):
            if app.deadline.remaining_s() <= 2 * _POLL_S:
                break  # a further request without time would fail
            app.deadline.sleep(_POLL_S)
            raw = admin.describe_group(group_id)
        cluster_id = admin.cluster_id()
    if gone_ok and raw.state == DEAD and not raw.members:
        return ConnectGroup(group_id, DEAD, "", None, None, ()), cluster_id
    try:
        return connect_group(raw), cluster_id
    except NotFoundError as error:
        raise with_existing_groups(app, error) from error


def discover_urls(app: App) -> list[str]:
    """Return the URLs of the group's workers: the given ones, else those that its members advertise.

    Only given URLs have credentials, so none is sent to a discovered one. Returns none if the group has no member.
    Raises UnreachableError if the URLs of all members are unknown, else as `read_group`.
    """
    if app.target.connect_urls:
        return list(app.target.connect_urls)
    group, _cluster_id = read_group(app)
    urls = urls_of(group)
    if group.is_mirror_maker:
        raise UnreachableError(f"no worker of group {group.group_id} can be asked: each {NO_REST}", hint=NO_REST_HINT)
    if group.members and not urls:
        raise UnreachableError(
            f"no member of group {group.group_id} reports the URL of its REST interface (the group is {group.state})",
            hint="Run again when the rebalance is over, or give the URL of a worker with -u.",
        )
    return urls


def urls_of(group: ConnectGroup) -> list[str]:
    """Return the URLs that the members advertise."""
    return [url for url in (normalised(member.url) for member in group.members if member.has_rest) if url is not None]


def worker_id_of(member: ConnectMember) -> WorkerId:
    """Return the member's worker id, HOST:PORT of its URL, or a substitute if the URL is unknown."""
    return worker_id_of_url(normalised(member.url) or f"://{member.member_id}")


def in_turn(app: App, urls: Sequence[str]) -> Iterator[tuple[str, ConnectWorker]]:
    """Yield each URL and its worker, with a time limit that leaves time for the others.

    A frozen worker accepts requests and does not answer: it must not use up the time in which the next one would.
    """
    for left, url in zip(range(len(urls), 0, -1), urls, strict=True):
        patience_s = min(WORKER_PATIENCE_S, app.deadline.remaining_s() / left)
        patient = app if left == 1 else replace(app, deadline=Deadline.after(patience_s, app.clock))
        yield url, patient.worker(url)


def answering_url(app: App) -> str | None:
    """Return the first given URL whose worker answers, without credentials."""
    for _url, worker in in_turn(app, app.target.connect_urls):
        try:
            root_of(app, worker)
        except EosctlError:
            continue
        return worker.url
    return None


def no_answer(what: str, failures: Sequence[EosctlError]) -> EosctlError:
    """Return the error for workers that all failed; it is UnauthorizedError if all of them refused authorization."""
    message = f"{what}: {'; '.join(each.message for each in failures) or 'none is known'}"
    hints = dict.fromkeys(each.hint for each in failures if each.hint)
    turned_away = bool(failures) and all(isinstance(each, UnauthorizedError) for each in failures)
    kind = UnauthorizedError if turned_away else UnreachableError
    return kind(message, hint=" ".join(hints) or "Give the URL of a worker that can be reached from here with -u.")


def _observe(
    app: App, pairs: Sequence[_Pair], given: Mapping[str, str], *, kafka_cluster_id: str | None = None
) -> tuple[WorkerObservation, ...]:
    """Join each pair with the worker's own answers; workers are asked in parallel."""

    def view(pair: _Pair) -> WorkerView:
        member, url = pair
        can_be_asked = member is None or member.has_rest
        return view_worker(app, given.get(url, url)) if url and can_be_asked else WorkerView()

    views = side_by_side(view, pairs, most=PARALLEL_WORKERS)
    return tuple(_observation(app, pair, view, kafka_cluster_id) for pair, view in zip(pairs, views, strict=True))


def _observation(app: App, pair: _Pair, view: WorkerView, kafka_cluster_id: str | None) -> WorkerObservation:
    member, url = pair
    refined = _mode_by_files(app, pair, view)
    alone = WorkerObservation(
        url=url,
        member_id=None,
        leader=False,
        version=view.version,
        health=view.health,
        config_offset=None,
        connectors=None,
        tasks=None,
        mode=refined.mode,
        evidence=(*view.evidence, *_place_in_group(pair, view, kafka_cluster_id), *refined.evidence),
        problems=tuple(_problems_of(url, view, refined, kafka_cluster_id)),
        failure=view.failure,
        plugins=view.plugins,
    )
    return alone if member is None else _as_member(alone, member)


def _as_member(alone: WorkerObservation, member: ConnectMember) -> WorkerObservation:
    """Add the group's view of the member to a worker's observation."""
    return replace(
        alone,
        url=member.url if alone.url is None else alone.url,
        member_id=member.member_id,
        leader=member.leader,
        config_offset=member.config_offset,
        connectors=member.connectors(),
        tasks=member.tasks(),
        client_host=member.host.removeprefix("/"),
        wanted_offset=member.wanted_offset,
        has_rest=member.has_rest,
        client_id=member.client_id,
        node=None if member.has_rest or alone.url is not None else member.member_id,
        worker_id=None if member.url is None else worker_id_of(member),
    )


def _mode_by_files(app: App, pair: _Pair, view: WorkerView) -> RefinedMode:
    """Return the worker's mode, by its own answers and by the files that may be its own."""
    member, url = pair
    given = [config.properties for config in app.target.worker_configs]
    read = [read_worker_file(file.source, file.values) for file in given]
    files = files_of(url, read, group_id=app.target.group_id)
    return refine_mode(view.mode, files) if member is None or member.has_rest else mode_of_files(files)


def _place_in_group(pair: _Pair, view: WorkerView, kafka_cluster_id: str | None) -> Iterator[str]:
    """Yield evidence of how the worker belongs to the group, in sentences."""
    member, url = pair
    if member is not None and not member.has_rest:
        yield NO_REST
    elif url is None:
        yield "the group does not report this member's URL now"
    if member is None and kafka_cluster_id is not None:
        yield "no member of the group advertises this URL"
    if _is_elsewhere(view, kafka_cluster_id):
        yield f"this worker uses another Kafka cluster, {view.kafka_cluster_id}"


def _is_elsewhere(view: WorkerView, kafka_cluster_id: str | None) -> bool:
    return kafka_cluster_id is not None and view.kafka_cluster_id not in (None, kafka_cluster_id)


def not_loaded_problem(url: str | None, version: str | None, plugin: str, reason: str) -> Problem:
    """Return the problem that a worker can't load a plugin."""
    message = f"the worker at {url}, which runs Kafka {version}, can't load the plugin {plugin}: {reason}"
    return Problem(codes.PLUGIN_NOT_LOADED, message, codes.PLUGIN_NOT_LOADED.next)


def _problems_of(
    url: str | None, view: WorkerView, refined: RefinedMode, kafka_cluster_id: str | None
) -> Iterator[Problem]:
    if _is_elsewhere(view, kafka_cluster_id):
        message = f"the worker at {url} uses Kafka cluster {view.kafka_cluster_id}, not {kafka_cluster_id}"
        yield Problem(codes.OTHER_KAFKA_CLUSTER, message, codes.OTHER_KAFKA_CLUSTER.next)
    for plugin, reason in sorted(view.unloadable.items()):
        yield not_loaded_problem(url, view.version, plugin, reason)
    if STANDALONE in view.evidence:
        message = f"the worker at {url} is {STANDALONE}"
        yield Problem(codes.STANDALONE_WORKER, message, "Give -u of a distributed worker.")
    if refined.contradiction is not None:
        message = f"the worker at {url} is {view.mode.value}: {refined.contradiction}"
        hint = "Restart the worker with the file that is meant, or give the file that it reads with -w."
        yield Problem(codes.FILE_CONTRADICTS_PROBE, message, hint)


def _discard_unproven(
    app: App,
    group: ConnectGroup,
    workers: Sequence[WorkerObservation],
    routes: Routes,
    given: Mapping[str, str],
) -> tuple[WorkerObservation, ...]:
    """Return the workers; discard a member's answers if another worker may have given them.

    If something else than the member defines its address (--connect-map, -u), another group's worker may be there,
    which its connectors show.
    """
    members = {worker_id_of(member) for member in group.members}
    ours = assigned_connectors(group)

    def proven(worker: WorkerObservation) -> WorkerObservation:
        member_id, url = worker.member_id or "", worker.url or ""
        doubt = routes.doubts.get(member_id, "")
        if not doubt and member_id in routes.unproven and worker.failure is None:
            connectors = connectors_at(app, given.get(url, url))
            destination, explanation = (
                (Destination.UNKNOWN, "")
                if connectors is None
                else classify_url(_workers(connectors), ours=ours, members=members)
            )
            if destination is Destination.ELSEWHERE:
                what = f"does not answer there itself: what answers {explanation}"
                return worker.without_answers(f"{url}: {what}").with_other_group_problem(what)
        return worker.without_answers(doubt) if doubt else worker

    return tuple(side_by_side(proven, workers, most=PARALLEL_WORKERS))


def _judge_strangers(
    app: App, group: ConnectGroup, workers: Sequence[WorkerObservation], given: Mapping[str, str]
) -> tuple[tuple[WorkerObservation, ...], tuple[WorkerObservation, ...]]:
    """Return the workers, with problems for foreign ones; and, separately, the proxies of members."""
    if all(worker.member_id is not None for worker in workers) or group.state not in (STABLE, EMPTY):
        return tuple(workers), ()
    members = [worker for worker in workers if worker.member_id is not None]
    urls = [worker.url for worker in members if worker.failure is None]
    answers = (connectors_at(app, given.get(url, url)) for url in urls if url is not None)
    connectors = next((found for found in answers if found is not None), None)
    ours = assigned_connectors(group) if connectors is None else frozenset(connectors)
    is_local = all(is_this_machine(each.client_host or "") for each in members)
    healthy = all(each.health == HEALTHY and not each.doubt for each in members)
    seen = _Members(ours, running_workers(connectors or {}), healthy=healthy, is_local=is_local)
    kept: list[WorkerObservation] = []
    proxies: list[WorkerObservation] = []
    for worker in workers:
        judged, is_proxy = _judge_stranger(app, group, worker, seen, given)
        (proxies if is_proxy else kept).append(judged)
    return tuple(kept), tuple(proxies)


class _Members(Struct, frozen=True):
    """The members' view: their connectors (None: unknown), the workers that run them, and whether all are healthy.

    Unless they are all on this machine (`is_local`), they do not know a worker as localhost.
    """

    connectors: frozenset[str] | None
    running_on: frozenset[WorkerId]
    healthy: bool
    is_local: bool


def assigned_connectors(group: ConnectGroup) -> frozenset[str] | None:
    """Return the connectors that the members run, by their coordinator, stopped ones included; None if unknown."""
    works = [member.connectors() for member in group.members]
    return None if any(each is None for each in works) else frozenset(name for each in works for name in each or ())


def _judge_stranger(
    app: App, group: ConnectGroup, worker: WorkerObservation, seen: _Members, given: Mapping[str, str]
) -> tuple[WorkerObservation, bool]:
    is_alien = any(each.code in (codes.OTHER_KAFKA_CLUSTER, codes.STANDALONE_WORKER) for each in worker.problems)
    if worker.member_id is not None or worker.failure is not None or is_alien or worker.url is None:
        return worker, False
    if not group.members:
        if worker.health == UNHEALTHY:
            return worker.with_outside_problem(f"the group {group.group_id} has no member"), False
        return worker.with_other_group_problem(f"answers, while the group {group.group_id} has no member"), False
    theirs = connectors_at(app, given.get(worker.url, worker.url))
    if theirs is None:
        return worker, False
    members = {worker_id_of(member) for member in group.members}
    destination, explanation = classify_url(_workers(theirs), ours=seen.connectors, members=members)
    if destination is Destination.ELSEWHERE:
        return worker.with_other_group_problem(f"is no member of the group {group.group_id} and {explanation}"), False
    is_known = seen.is_local or not is_loopback_url(worker.url)
    named = seen.running_on | running_workers(theirs) if is_known else frozenset()
    why = explain_separate_worker(worker.url, worker.health, running_on=named, members_healthy=seen.healthy)
    if why is not None and _stays_outside(app, worker.url):
        return worker.with_outside_problem(f"it is not a member of the group {group.group_id}: {why}"), False
    return replace(worker, evidence=(*worker.evidence, explanation)), destination is Destination.IN


def _workers(connectors: Mapping[str, ConnectorEntry]) -> dict[str, frozenset[WorkerId]]:
    return {name: entry.workers() for name, entry in connectors.items()}


def _stays_outside(app: App, url: str) -> bool:
    """Check that the group stays Stable without the worker for longer than a just started worker takes to join.

    The observations of both may be a moment apart.
    """
    patience = Deadline.after(min(JOIN_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(_POLL_S):
        now, _cluster_id = read_group(app, gone_ok=True, wait=False)
        if now.state != STABLE or worker_id_of_url(url) in {worker_id_of(member) for member in now.members}:
            return False
    return True


def observe_former_members(app: App, seen: GroupObservation, urls: Sequence[str]) -> tuple[WorkerObservation, ...]:
    """Observe the former members' URLs, judged like given ones; read the group anew.

    Another service may have such an address now, so callers must withhold credentials. Raises as `read_group`.
    """
    group, cluster_id = read_group(app, gone_ok=True, wait=False)
    present = {worker_id_of(member) for member in group.members}
    former: list[_Pair] = [(None, url) for url in urls if worker_id_of_url(url) not in present]
    workers = [*seen.members, *_observe(app, former, {}, kafka_cluster_id=cluster_id)]
    return tuple(each for each in _judge_strangers(app, group, workers, {})[0] if (None, each.url) in former)


def _given_urls(app: App) -> dict[str, str]:
    """Return a map of normalised URLs to the URLs as given, which may carry credentials."""
    return {parse_worker_url(url).text: url for url in app.target.connect_urls}
