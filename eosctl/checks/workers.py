"""`workers list` and `workers probe`: the observed group as rows, and its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.core.configs.behind import behind_findings
from eosctl.core.findings import Finding
from eosctl.core.records import TopicRead
from eosctl.core.workers.url import NOT_REACHED_HINT, is_loopback_url, is_this_machine
from eosctl.errors import DeadlineError, EosctlError, ExitCode, UnreachableError
from eosctl.foreign import shell_word
from eosctl.group import codes as group_codes
from eosctl.group.gather import observe_workers
from eosctl.group.members import DEAD, EMPTY, STABLE, UNSIGNED_PROTOCOLS
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.rows import WORKERS_LIST, WORKERS_PROBE, GroupData, GroupPart, WorkersSummary
from eosctl.group.topics.config import read_config_topic
from eosctl.group.ways import THEMSELVES
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report

SILENT_CODES = frozenset({group_codes.WORKER_UNREACHABLE, codes.WORKER_NOT_ANSWERING})


def list_workers(app: App) -> Report:
    """Report the workers (`eosctl workers list`); exits 7 when some do not answer, else as the first of them failed.

    Raises NotFoundError, UsageError, and what Kafka's connection raises.
    """
    return _report(WORKERS_LIST, *_with_lag(app, observe_workers(app)))


def probe_workers(app: App) -> Report:
    """Report the workers in detail (`eosctl workers probe`); exits and raises as `list_workers`."""
    return _report(WORKERS_PROBE, *_with_lag(app, observe_workers(app)))


def group_problems(app: App, group: GroupObservation, configs: TopicRead | None = None) -> list[Problem]:
    """Return the problems of an observed group and its config topic, except those of silent workers."""
    return list(_problems(*_with_lag(app, group, configs)))


def workers_behind(app: App, group: GroupObservation) -> list[Finding]:
    """Find members that lag behind the config topic, read only if one reported its offset. Raises EosctlError."""
    behind = [
        (member.url or str(member.member_id), (member.config_offset, member.wanted_offset))
        for member in group.members
        if member.config_offset is not None and member.wanted_offset is not None
    ]
    if not behind:
        return []
    with app.topics() as store:
        topic = read_config_topic(app, store)
    now_ms = app.clock.now_ms()
    return [
        finding
        for worker, offsets in behind
        for finding in behind_findings(worker, offsets, read=topic.read, state=topic.state, now_ms=now_ms)
    ]


def _with_lag(
    app: App, group: GroupObservation, configs: TopicRead | None = None
) -> tuple[GroupObservation, list[Problem]]:
    """Add how many records of the config topic came after the offset that each member reported at the last rebalance.

    The topic is read unless `configs` was read since then.
    """
    if app.target.client is None or all(member.config_offset is None for member in group.members):
        return group, []
    try:
        if configs is None:
            with app.topics() as store:
                configs = read_config_topic(app, store).read
    except EosctlError as exc:
        message = f"how far the workers are behind the config topic is not known: {exc.message}"
        return group, [Problem(codes.CONFIG_TOPIC_UNREAD, message, exc.hint, unseen=True)]

    offsets = [record.offset for record in configs.records]

    def lag(member: WorkerObservation) -> int | None:
        told = member.config_offset
        return None if told is None else sum(offset >= told for offset in offsets)

    return replace(group, members=tuple(replace(member, config_lag=lag(member)) for member in group.members)), []


def _report(kind: Kind, group: GroupObservation, problems: Sequence[Problem]) -> Report:
    modes = Counter(member.mode.value for member in group.members)
    return Report(
        kind=kind,
        rows=[member.as_row() for member in (*group.members, *group.proxies)],
        summary=WorkersSummary(workers=len(group.members), modes=dict(sorted(modes.items()))),
        data=GroupData(
            group=GroupPart(
                state=group.state,
                protocol=group.protocol,
                leader_member_id=group.leader_member_id,
                leader_url=group.leader_url,
            )
        ),
        target={"kafka_cluster_id": group.kafka_cluster_id, "group_id": group.group_id},
        problems=[
            *_problems(group, problems),
            *(_with_proxy(group, member, silent_problem(member.failure)) for member in group.members if member.failure),
        ],
        exit_code=_exit_code(group.members),
    )


def _problems(group: GroupObservation, before: Sequence[Problem]) -> Iterator[Problem]:
    yield from before
    if group.state not in (None, STABLE, EMPTY, DEAD):
        message = f"the group {group.group_id} is not stable but {group.state}; who runs what is not known now"
        yield Problem(codes.GROUP_NOT_STABLE, message, "Run again when the rebalance is over.", unseen=True)
    yield from _of_the_group(group)
    for member in group.members:
        yield from member.problems


def _of_the_group(group: GroupObservation) -> Iterator[Problem]:
    """Yield warnings of members that REST can't distinguish, and of a protocol under which REST is not signed."""
    hint = "Give each worker a name of its own: rest.advertised.host.name, or the address of its pod or container."
    members = [member for member in group.members if member.member_id is not None]
    urls = Counter(member.url for member in members)
    for doubt in dict.fromkeys(member.doubt for member in members if member.doubt and not member.problems):
        yield Problem(
            codes.SHARED_URL,
            doubt,
            _own_routes([each for each in members if each.doubt == doubt], hint),
            unseen=True,
        )
    for member in members:
        if urls[member.url] > 1 or not is_loopback_url(member.url or "") or is_this_machine(member.client_host or ""):
            continue
        message = (
            f"the member that is connected to Kafka from {member.client_host} advertises {member.url}, {THEMSELVES}: "
            "other workers, and eosctl elsewhere, do not reach it there"
        )
        yield Problem(codes.LOOPBACK_URL, message, hint)
    if group.protocol in UNSIGNED_PROTOCOLS:
        message = f"the group's protocol is {group.protocol}: PUT /connectors/C/fence needs no signature of a worker"
        hint = "Set connect.protocol=sessioned, the default since Kafka 2.4 (KIP-507), on every worker."
        yield Problem(codes.UNSIGNED_PROTOCOL, message, hint)


def _own_routes(members: Sequence[WorkerObservation], otherwise: str) -> str:
    """Return a hint to distinguish members that share a route: -u with the address of each, if each has one."""
    places = {f"{member.client_host}": urlsplit(member.url or "") for member in members}
    if len(places) < len(members) or any(is_this_machine(host) for host in places):
        return f"{otherwise} --connect-map can name an address or a port for each."
    urls = [f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{url.port}" for host, url in sorted(places.items())]
    return f"Where these are reached from here: {' '.join(f'-u {url}' for url in urls)}. {otherwise}"


def silent_problem(failure: EosctlError) -> Problem:
    """Make the problem of a worker that does not answer, or not as a Connect worker does."""
    if isinstance(failure, UnreachableError | DeadlineError):
        return Problem(group_codes.WORKER_UNREACHABLE, failure.message, failure.hint or NOT_REACHED_HINT)
    return Problem(codes.WORKER_NOT_ANSWERING, failure.message, failure.hint)


def _with_proxy(group: GroupObservation, member: WorkerObservation, problem: Problem) -> Problem:
    """Add to the problem of a silent member the given URL that must lead to it, if there is one."""
    if not group.proxies or member.url is None:
        return problem
    proxy = group.proxies[0].url
    if len(group.members) > 1:
        hint = (
            f"{proxy} leads to one of the members; --connect-map ADVERTISED=REACHABLE says how each is reached, which "
            "takes an address or a port for each."
        )
        return replace(problem, hint=hint)
    return replace(problem, hint=f"{proxy} leads to it: --connect-map {shell_word(f'{member.url}={proxy}')}")


def _exit_code(workers: Sequence[WorkerObservation]) -> ExitCode:
    failures = [worker.failure for worker in workers if worker.failure is not None]
    if not failures:
        return ExitCode.OK
    return failures[0].exit_code if len(failures) == len(workers) else ExitCode.PARTIAL
