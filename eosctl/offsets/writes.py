"""Plans of offset writes: their common parts, their reports, their refusals and their journal; and the plan of `merge`.

`apply` applies them. A warning counts copies of keys on partitions other than the one that is written to.

There is one journal per cluster: the last write that was begun, and whether its end was seen. It is also the lock that
keeps two eosctl of one machine from writing offsets of a cluster at the same time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances, Waiver
from eosctl.core.ids import offsets_transactional_id
from eosctl.core.offsets import codes as offset_topic_codes
from eosctl.core.offsets.findings import STALE_COPY
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.offsets.records import can_be_a_name
from eosctl.core.offsets.views import AnyStore, Hidden, KeyAction, PlannedWrite, Prefer, Store, policy_of
from eosctl.core.records import NewTopic
from eosctl.core.wording import counted, rfc3339
from eosctl.engine.files import spilled_if_several
from eosctl.engine.planned import PlannedWrites
from eosctl.engine.stores import merge_stores
from eosctl.engine.write import are_several
from eosctl.errors import RefusedError, UsageError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets import codes
from eosctl.offsets.guard import refuse_running, refuse_running_source, source_problem
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.listing import refuse_same, report_target, require_store
from eosctl.offsets.rows import MOST_ROWS
from eosctl.offsets.stores.gather import OffsetStores, gather_stores
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.write_rows import (
    IMPORT,
    MERGE,
    RESTORE,
    ActionCounts,
    WriteKinds,
    WritePlanData,
    WritePlanSummary,
    WriteRow,
    WrittenRow,
    topic_parts,
    write_members,
)
from eosctl.report import Problem, Report
from eosctl.state.backups import undo_command
from eosctl.state.journal import EndEntry, Journal

if TYPE_CHECKING:
    from eosctl.engine.columns import Table


def offsets_journal(app: App, cluster_id: str) -> Journal:
    """Return the journal of the writes to `cluster_id`."""
    digest = hashlib.sha256(cluster_id.encode()).hexdigest()[:8]
    return Journal(app.state_dir / "journals" / f"offsets-writes-{digest}.ndjson", app.clock)


class _Begin(Struct, frozen=True):
    name: str
    backup: str
    time_ms: int
    offsets: int = 0


_ENTRIES: Mapping[str, type[_Begin | EndEntry]] = {"begin": _Begin, "end": EndEntry}


def cut_off_problems(app: App, cluster_id: str) -> list[Problem]:
    """Warn of the last write if its run ended before the write was known to be done; raise EosctlError."""
    entries = offsets_journal(app, cluster_id).read(_ENTRIES)
    last = entries[-1] if entries else None
    if not isinstance(last, _Begin):
        return []
    offsets, when = counted(last.offsets, "offset"), rfc3339(last.time_ms)
    message = f"{last.name} of {when} ({offsets}) was cut off before its end was seen"
    undo = undo_command(Path(last.backup))
    hint = f"`eosctl offsets verify {arguments(last.backup)}` shows how much of it was written; `{undo}` takes it back."
    return [Problem(codes.WRITE_CUT_OFF, message, hint=hint)]


def stale_problem(copies: int, *, where: str = "") -> Problem:
    """Warn that so many copies get tombstones; `where` begins with a comma."""
    return Problem(
        codes.STALE_COPIES,
        f"{counted(copies, 'older copy', 'older copies')} of keys that are written lie on other partitions{where}, and "
        "get tombstones",
        hint="Until compaction has removed those (delete.retention.ms) a worker that starts may read one last: "
        "restart none before, or look at its offsets afterwards.",
    )


class MergeRequest(Struct, frozen=True):
    """The stores to merge for `connectors`, or for all with a dedicated topic; `into` is `dedicated` or `global`.

    If `source` is None, it is the other of the two. Else it is any store, even of another cluster: then no `connectors`
    means all that the source has, and without `prefer` the target's values stay.
    """

    connectors: tuple[str, ...]
    into: str
    prefer: Prefer | None = None
    dedicated_topic: str | None = None
    source: str | None = None
    allowances: Allowances = NOTHING_WAIVED


class OffsetWritePlan(Struct, frozen=True):
    """Writes, and the stores that they were planned from; `kinds` are the operation's reports.

    `refusal` holds whether or not tasks run. `details` are further members of a shown write's row, by its place.
    """

    kinds: WriteKinds
    writes: PlannedWrites
    creates: tuple[NewTopic, ...]
    found: OffsetStores
    allowances: Allowances
    problems: tuple[Problem, ...] = ()
    refusal: RefusedError | None = None
    details: Mapping[tuple[str, bytes, int], Mapping[str, Any]] = {}

    @property
    def name(self) -> str:
        """The operation's name, which its backups and journals have too."""
        return self.kinds.name

    def row(self, write: PlannedWrite) -> WriteRow:
        """Return the plan's row for a write."""
        row: type[WriteRow] = self.kinds.plan.row
        return row(**write_members(write), **self.details.get(write.place(), {}))

    def result_row(self, write: PlannedWrite, outcome: str) -> WrittenRow:
        """Return the result's row for a write."""
        row: type[WrittenRow] = self.kinds.result.row
        return row(**write_members(write), outcome=outcome, **self.details.get(write.place(), {}))

    def sends(self) -> PlannedWrites:
        """Return the writes that produce a record, in order."""
        return self.writes.sends()

    def connectors(self) -> list[str]:
        """Return the connectors whose offsets are written, sorted."""
        return self.sends().connectors

    def source_profiles(self) -> list[str]:
        """Return the profiles of the other clusters that are read."""
        return sorted({profile for name in self.found.away if (profile := parse_store(name).profile)})


def plan_offsets_merge(app: App, request: MergeRequest) -> OffsetWritePlan:
    """Read both stores of each connector and decide per key.

    Raises NotFoundError, UsageError for a connector without a dedicated topic, RefusedError if an open transaction may
    hide offsets in a store.
    """
    source_name, prefer = _merge_source(request)
    extra = () if source_name in (GLOBAL, DEDICATED) else (source_name,)
    found = gather_stores(app, connectors=request.connectors or None, pattern=request.dedicated_topic, extra=extra)
    connectors = sorted(set(request.connectors)) or _mergeable(found, source_name, request.into)
    pairs: dict[str, tuple[AnyStore, AnyStore]] = {}
    for connector in connectors:
        for name in (source_name, request.into):
            require_store(found, connector, name)
        refuse_same(found, connector, source_name, request.into)
        stores = found.of(connector)
        pairs[connector] = stores[source_name], stores[request.into]
        refuse_hidden(app, connector, stores=pairs[connector])
    writes = _in_memory_or_parts(app, merge_stores(pairs, policy_of(request.into, prefer), fallback=not extra))
    refuse_elsewhere(found, connectors)
    refuse_unfit(app, found, writes.sends().topics)
    return write_plan(MERGE, writes, found, allowances=request.allowances)


def _in_memory_or_parts(app: App, tables: Iterator[Table]) -> PlannedWrites:
    """Collect the writes of some WRITES, several on the disk; raise EosctlError if they do not fit there."""
    with writing_to(spool_of(app), need="A large merge needs about four times the size of its values there.") as spool:
        return PlannedWrites(spilled_if_several(tables, spool))


def _merge_source(request: MergeRequest) -> tuple[str, Prefer]:
    """Return the store to take from, and the store whose value wins; raise UsageError if they contradict each other."""
    if request.source is None:
        return (GLOBAL if request.into == DEDICATED else DEDICATED), request.prefer or Prefer.DEDICATED
    prefer = request.prefer or Prefer(request.into)
    if request.source == request.into:
        raise UsageError(f"--from {request.source} is also the --into store", hint="Name two stores.")
    if request.source not in (GLOBAL, DEDICATED) and prefer not in (Prefer.NEWEST, Prefer(request.into)):
        raise UsageError(
            f"--prefer {prefer} is neither of the two stores",
            hint=f"With --from {request.source} it is {request.into} (the default), or newest.",
        )
    return request.source, prefer


def _mergeable(found: OffsetStores, source: str, into: str) -> list[str]:
    """Return every connector that has both stores; with a source neither global nor dedicated, those in that store."""
    names = list(filter(can_be_a_name, found.connectors()))
    if DEDICATED in (source, into):
        names = [name for name in names if found.dedicated.of(name) is not None]
    if source in (GLOBAL, DEDICATED):
        return names
    shown = next((found.of(name)[source].shown() for name in names), set[str]())  # one store for all connectors
    return [name for name in names if name in shown]


def write_plan(
    kinds: WriteKinds,
    writes: PlannedWrites | Sequence[PlannedWrite],
    found: OffsetStores,
    *,
    allowances: Allowances,
) -> OffsetWritePlan:
    """Return the plan of `writes`, with the topics to create for them and its warnings."""
    if not isinstance(writes, PlannedWrites):
        writes = PlannedWrites.of(writes)
    return OffsetWritePlan(
        kinds=kinds,
        writes=writes,
        creates=_new_topics(found, writes.sends().topics),
        found=found,
        allowances=allowances,
        problems=(*found.dedicated.problems, *_scattered_problems(writes, found.stores)),
    )


def refuse_unfit(app: App, found: OffsetStores, names: Collection[str]) -> None:
    """Raise RefusedError if records would go to a topic that is not fit for offsets."""
    with app.topics() as topics:
        refuse_unfit_targets(app, topics, names, configs=found.dedicated.configs)


def refuse_hidden_in_target(app: App, connector: str, target: Store, *, written: Collection[bytes]) -> None:
    """Raise RefusedError for keys hidden in the target, except those that are only hidden there and `written` now."""
    stays = [key for key in target.hides_of(connector) if key in target.records or key not in written]
    refuse_hidden_keys(app, target.topic, target.hidden, stays, whose=f" of {connector}")


def refuse_hidden(app: App, connector: str, *, stores: Iterable[AnyStore]) -> None:
    """Raise RefusedError if an open transaction hides an offset of `connector` in one of `stores`.

    It may be the first of its key, which nothing else shows. Hidden offsets of other connectors do not matter.
    """
    for store in stores:
        refuse_hidden_keys(app, store.topic, store.hidden, store.hides_of(connector), whose=f" of {connector}")


def refuse_hidden_keys(app: App, topic: str, hidden: Hidden, keys: Iterable[bytes | None], *, whose: str = "") -> None:
    """Raise RefusedError if an open transaction hides a record of one of `keys`; `whose` begins with a space."""
    places = {place for key in keys if key is not None for place in hidden.get(key, ())}
    if not places:
        return
    ours = offsets_transactional_id(app.target.group_id)
    raise RefusedError(
        f"topic {topic}, partition {', '.join(map(str, sorted(places)))}: an open transaction hides newer "
        f"offsets{whose}",
        hint=f"`eosctl offsets lint --store {shell_word(topic)}` shows its producer. Wait for its end, or end "
        f"it, and plan again. If it is that of {ours}, a killed eosctl left it: `eosctl fence {arguments(ours)}` ends "
        "it at once, and so the ids of a killed `offsets migrate`, which begin with eosctl-migrate-.",
    )


def refuse_elsewhere(found: OffsetStores, connectors: Sequence[str]) -> None:
    """Raise RefusedError for connectors whose config names Kafka brokers of its own."""
    elsewhere = sorted(found.dedicated.elsewhere & set(connectors))
    if elsewhere:
        raise RefusedError(
            f"{', '.join(elsewhere)}: the config names Kafka brokers of its own, where the dedicated offsets topic is",
            hint="list, get, diff, lint and switch follow it there; nothing was written. Point -b at those brokers.",
        )


def _new_topics(found: OffsetStores, names: Iterable[str]) -> tuple[NewTopic, ...]:
    """Return the missing topics of a write, with the partitions and replication factor of the global topic."""
    like = found.descriptions[found.global_topic]
    missing = (topic for topic in names if topic not in found.descriptions)
    return tuple(NewTopic(topic, like.partitions, like.replication_factor) for topic in missing)


def _scattered_problems(writes: PlannedWrites, stores: Mapping[str, AnyStore]) -> Iterable[Problem]:
    stale = writes.because(STALE_COPY)
    cleaned = {(write.topic, write.key.raw) for write in stale}
    if stale:
        yield stale_problem(len(stale), where=f", first in topic {stale[0].topic} on {stale[0].partition}")
    for write in writes.misplaced({name: store.partitions for name, store in stores.items()}):
        present = write.before
        if present is None or (write.topic, write.key.raw) in cleaned:
            continue
        home = stores[write.topic].home(write.key.raw)
        when = "as soon as the connector has written its own" if write.partition != home else "when this is written"
        yield Problem(
            offset_topic_codes.WRONG_PARTITION,
            f"topic {write.topic} has an offset of {write.key.connector} on partition {present.partition}, but "
            f"Connect's producer puts it on {home}: {when} there are two, and a worker takes the one that it happens "
            "to read last",
            hint=f"`eosctl offsets lint --store {shell_word(write.topic)}` gives the repair; apply it when the "
            "connector has written once.",
        ).as_warning()


def check_writable(app: App, plan: OffsetWritePlan) -> None:
    """Raise RefusedError for undecided conflicts, the plan's own refusal, or while tasks of its connectors may run."""
    undecided = plan.writes.actions[KeyAction.CONFLICT]
    if undecided:
        raise RefusedError(
            f"{counted(undecided, 'offset was', 'offsets were')} written by someone else since the backup was made; "
            "nothing was written",
            hint=f"See which with --dry-run; {Waiver.OVERWRITE_NEWER} puts the backup over them.",
        )
    if plan.refusal is not None:
        raise plan.refusal
    if plan.sends():
        down, force = plan.allowances.workers_down, plan.allowances.force_running
        refuse_running(app, plan.connectors(), workers_down=down, force_running=force)
        for profile in plan.source_profiles():
            refuse_running_source(
                app.elsewhere(profile), plan.connectors(), profile=profile, workers_down=down, force_running=force
            )


def refusal_of(app: App, plan: OffsetWritePlan) -> RefusedError | None:
    """Return the error that `check_writable` raises, else None."""
    try:
        check_writable(app, plan)
    except RefusedError as exc:
        return exc
    return None


def show_plan(app: App, plan: OffsetWritePlan) -> Report:
    """Report the plan, for people and scripts."""
    sources = (source_problem(app.elsewhere(profile), profile) for profile in plan.source_profiles())
    problems = [
        *plan.problems,
        *cut_off_problems(app, plan.found.cluster_id),
        *_split_problems(plan),
        *(problem for problem in sources if problem is not None),
    ]
    rows = [plan.row(write) for write, _outcome in plan.writes.first(MOST_ROWS)]
    problems += _forward_problems(plan, rows)
    return Report(
        kind=plan.kinds.plan,
        rows=rows,
        summary=WritePlanSummary(**plan_summary(plan)),
        data=WritePlanData(**plan_data(plan)),
        target=report_target(app, plan.found),
        problems=problems,
        touches=touches(plan),
    )


def _forward_problems(plan: OffsetWritePlan, rows: Sequence[WriteRow]) -> list[Problem]:
    """Warn of offsets that an import or a restore sets further on; a merge takes those that were in use elsewhere."""
    forward = [row for row in rows if row.order in (Order.AHEAD, Order.MIXED)]
    if not forward or plan.kinds not in (IMPORT, RESTORE):
        return []
    of_shown = f" of the first {len(rows)}" if len(rows) < len(plan.writes) else ""
    message = f"{counted(len(forward), 'offset', 'offsets')}{of_shown} would go forward: what lies between is not read"
    return [Problem(codes.GOES_FORWARD, message, hint=codes.GOES_FORWARD.next)]


def touches(plan: OffsetWritePlan) -> Mapping[str, Sequence[str]] | None:
    """Return the names of all connectors and topics that a plan writes to, if it has more writes than are shown."""
    sends = plan.sends()
    return {"connectors": sends.connectors, "topics": sends.topics} if len(plan.writes) > MOST_ROWS else None


def _split_problems(plan: OffsetWritePlan) -> list[Problem]:
    if not are_several(plan.sends().in_order_of_sending()):
        return []
    message = f"{len(plan.sends())} offsets are too many for one transaction: they go in several, one after the other"
    return [Problem(codes.SPLIT, message, hint=codes.SPLIT.next)]


def plan_summary(plan: OffsetWritePlan) -> dict[str, Any]:
    """Return the members of a WritePlanSummary."""
    counts = plan.writes.actions
    return {
        "counts": ActionCounts(**{action.value: counts[action] for action in KeyAction}),
        "conflicts": plan.writes.conflicts,
        "creates": len(plan.creates),
    }


def plan_data(plan: OffsetWritePlan) -> dict[str, Any]:
    """Return the members of a WritePlanData."""
    data: dict[str, object] = {
        "creates": topic_parts(plan.creates),
        "overrides": plan.allowances.names(),
        "keys": len(plan.writes),
    }
    if len(plan.writes) > MOST_ROWS:  # a digest records the keys that are not shown
        data["plan"] = plan.writes.digest()
    return data


def require_choice(connectors: Sequence[str], *, everything: bool) -> None:
    """Raise UsageError unless either connectors or all were requested, and not both."""
    if bool(connectors) == everything:
        raise UsageError("which connectors?", hint="Give --connector (repeatable) or --all.")
