"""Plans and applies `offsets set` and `reset`: the writes of each key, their route, and the changes that they make.

The plan has the keys, stores and partitions to write for single offsets. Existing keys keep their bytes; a key is made
up only for a source partition that no store has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.offsets.findings import with_stale_copies
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key, typed_offset, typed_partition
from eosctl.core.offsets.views import Flag, KeyAction, PlannedWrite, Store, connector_keys, live, offset_views
from eosctl.core.wording import counted
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import NotFoundError, UsageError
from eosctl.foreign import shell_word
from eosctl.offsets import codes
from eosctl.offsets.apply import apply_plan, plan_to_write, send_to_topics
from eosctl.offsets.edit.changes import KeyChange, change_problems, key_changes, shape_refusal
from eosctl.offsets.edit.route import AUTO, REST, EditRoute, choose_route, refuse_sink, send_by_rest
from eosctl.offsets.history.as_of import AsOf, FormerOffsets, former_versions
from eosctl.offsets.history.events import Version
from eosctl.offsets.history.rows import version_row
from eosctl.offsets.listing import refuse_unknown
from eosctl.offsets.stores.gather import OffsetStores, gather_stores
from eosctl.offsets.write_rows import RESET, SET, WriteKinds
from eosctl.offsets.writes import OffsetWritePlan, refuse_elsewhere, refuse_hidden, refuse_unfit, show_plan, write_plan
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report


def plan_set(stores: Mapping[str, Store], wanted: OffsetKey, value: bytes) -> list[PlannedWrite]:
    """Plan `value` for the source partition of `wanted` in every store, the dedicated one first, as Connect does.

    Copies of its keys on other partitions get tombstones. Every spelling with a live value is written, since a task
    asks for one of them and it is not known for which. Raises UsageError for a source partition that no connector can
    have.
    """
    ordered = [stores[name] for name in (DEDICATED, GLOBAL) if name in stores]
    keys = spellings_to_set(ordered, wanted)
    writes = [_set(key, store, value) for store in ordered for key in keys]
    return with_stale_copies(writes, {store.topic: store for store in ordered})


def spellings_to_set(stores: Sequence[Store], wanted: OffsetKey) -> list[OffsetKey]:
    """Return the keys to write a value under: the live spellings, else the one deleted last, else Connect's own."""
    known = spellings(stores, wanted)
    alive = [key for key in known if any(live(store.records.get(key.raw)) for store in stores)]
    if alive:
        return alive
    if known:
        return [max(known, key=lambda key: _last_change_ms(key, stores))]
    made = decode_key(encode_key(wanted.connector, wanted.partition))
    if not isinstance(made, OffsetKey):
        raise UsageError(f"{wanted.partition!r} cannot be a source partition")
    return [made]


def spellings(stores: Iterable[Store], wanted: OffsetKey) -> list[OffsetKey]:
    """Return the keys that mean the source partition of `wanted`, by their bytes."""
    return [key for key in connector_keys(stores, wanted.connector) if key.identity == wanted.identity]


def _last_change_ms(key: OffsetKey, stores: Iterable[Store]) -> int:
    return max(store.records[key.raw].timestamp_ms for store in stores if key.raw in store.records)


def _set(key: OffsetKey, store: Store, value: bytes) -> PlannedWrite:
    present, partition = store.records.get(key.raw), store.home(key.raw)
    replaces = store.at(key.raw, partition)
    equal = present is not None and present.value == value and present.partition == partition
    return PlannedWrite(
        KeyAction.KEEP if equal else KeyAction.WRITE,
        "equal" if equal else "set",
        key,
        store.topic,
        partition,
        before=present,
        after=value,
        replaces=replaces,
    )


def plan_reset(stores: Mapping[str, Store], keys: Iterable[OffsetKey]) -> list[PlannedWrite]:
    """Plan tombstones for `keys` on every partition with a value, in the global store first (KAFKA-15018).

    In the other order, a crash in between would leave an old global value, which is documented to come back.
    """
    ordered = [stores[name] for name in (GLOBAL, DEDICATED) if name in stores]
    return [write for store in ordered for key in keys for write in _resets(key, store)]


def _resets(key: OffsetKey, store: Store) -> Iterable[PlannedWrite]:
    newest = store.records.get(key.raw)
    if newest is None:
        return
    for partition, record in sorted(store.several.get(key.raw, {newest.partition: newest}).items()):
        gone = live(record) is None
        yield PlannedWrite(
            KeyAction.KEEP if gone else KeyAction.DELETE,
            "deleted_already" if gone else "reset",
            key,
            store.topic,
            partition,
            before=record,
            after=record.value if gone else None,
            replaces=record,
        )


class SetRequest(Struct, frozen=True):
    """Pairs of JSON texts, a source partition in any spelling and its new offset; or former versions, by `as_of`.

    `via` is auto, topic or rest.
    """

    connector: str
    offsets: tuple[tuple[str, str], ...] = ()
    as_of: AsOf | None = None
    via: str = AUTO
    allowances: Allowances = NOTHING_WAIVED


class ResetRequest(Struct, frozen=True):
    """Source partitions as JSON texts, or with `everything` all of the connector's."""

    connector: str
    partitions: tuple[str, ...]
    everything: bool = False
    via: str = AUTO
    allowances: Allowances = NOTHING_WAIVED


class EditPlan(Struct, frozen=True):
    """The writes, the changes that they make to the present offsets, and their route.

    `former` are the versions that the values are taken from.
    """

    writes: OffsetWritePlan
    route: EditRoute
    changes: tuple[KeyChange, ...] = ()
    former: tuple[Version, ...] = ()


def prepare_edit(app: App, plan_of: Callable[[App], EditPlan]) -> Plan:
    """Return the plan to set or delete a connector's offsets; raise the errors of `plan_of`."""
    plan = plan_of(app)
    apply = partial(apply_edit, app, plan, lambda: plan_of(app.with_whole_timeout()).writes)
    return plan_to_write(app, plan.writes, partial(show_edit, app, plan), apply)


def plan_offsets_set(app: App, request: SetRequest) -> EditPlan:
    """Read the connector's stores and decide per key.

    Raises UsageError for a text that is no source partition or no offset, NotFoundError, RefusedError for a sink, for
    hidden offsets, for versions that the log no longer has, and for a `via` that is known not to work. The plan itself
    refuses a member that would change its type.
    """
    wanted = [
        (typed_partition(request.connector, each), encode_offset(typed_offset(value)))
        for each, value in request.offsets
    ]
    former = former_versions(app, request.connector, request.as_of) if request.as_of else FormerOffsets()
    wanted += [(each.key, each.record.value or b"") for each in former.versions]
    if len({key.identity for key, _value in wanted}) < len(wanted):
        raise UsageError("one source partition was given twice", hint="Give each --partition one --offset.")
    found = _gather(app, request.connector)
    stores = found.rows(request.connector)
    writes = [write for key, value in wanted for write in plan_set(stores, key, value)]
    plan = _edit_plan(app, SET, found, writes, request=request)
    warned = replace(plan.writes, problems=(*former.problems, *plan.writes.problems))
    return replace(plan, writes=warned, former=former.versions)


def plan_offsets_reset(app: App, request: ResetRequest) -> EditPlan:
    """Plan deletions as `plan_offsets_set` plans values; raise NotFoundError for a source partition in no store."""
    if bool(request.partitions) == request.everything:
        raise UsageError("which source partitions?", hint="Give --partition (repeatable) or --all-partitions.")
    wanted = [typed_partition(request.connector, partition) for partition in request.partitions]
    found = _gather(app, request.connector)
    stores = found.rows(request.connector)
    keys = connector_keys(stores.values(), request.connector) if request.everything else _known(stores, wanted)
    return _edit_plan(app, RESET, found, plan_reset(stores, keys), request=request)


def _gather(app: App, connector: str) -> OffsetStores:
    refuse_sink(app, connector)
    found = gather_stores(app, connectors=(connector,))
    refuse_elsewhere(found, [connector])
    refuse_unknown(found, connector)
    refuse_hidden(app, connector, stores=found.of(connector).values())
    return found


def _known(stores: Mapping[str, Store], wanted: Sequence[OffsetKey]) -> list[OffsetKey]:
    """Return every spelling of each wanted source partition, once."""
    keys: dict[bytes, OffsetKey] = {}
    for want in wanted:
        found = spellings(stores.values(), want)
        if not found:
            raise NotFoundError(
                f"no offset of {want.connector} for source partition {json.dumps(want.partition, ensure_ascii=False)}",
                hint=f"`eosctl offsets get --connector {shell_word(want.connector or '')}` shows all; numbers and "
                "texts are different.",
            )
        keys |= {key.raw: key for key in found}
    return list(keys.values())


def _edit_plan(
    app: App,
    kinds: WriteKinds,
    found: OffsetStores,
    writes: Sequence[PlannedWrite],
    *,
    request: SetRequest | ResetRequest,
) -> EditPlan:
    refuse_unfit(app, found, sorted({write.topic for write in writes if write.sends()}))
    plan = write_plan(kinds, _by_topic(writes), found, allowances=request.allowances)
    changes = key_changes(plan.writes, found.rows(request.connector).values())
    plan = replace(
        plan,
        problems=(
            *plan.problems,
            *_spelling_problems(found, request.connector, plan.writes),
            *change_problems(changes, read_before=isinstance(request, SetRequest) and request.as_of is not None),
        ),
        refusal=None if request.allowances.force_shape else shape_refusal(changes),
    )
    return EditPlan(plan, choose_route(app, request.connector, plan, via=request.via), tuple(changes))


def _by_topic(writes: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Sort writes by topic, topics in the order of their first write: a stage of the write is one topic."""
    topics = list(dict.fromkeys(write.topic for write in writes))
    return sorted(writes, key=lambda write: topics.index(write.topic))


def _spelling_problems(found: OffsetStores, connector: str, writes: PlannedWrites) -> list[Problem]:
    """Warn of source partitions with keys in several spellings, and of a key that had to be made up."""
    stores = found.rows(connector)
    views = offset_views(stores, connector, dedicated_in_use=DEDICATED in stores)
    doubled = {view.key.raw for view in views if Flag.DUPLICATE_SPELLING in view.flags}
    problems = []
    if any(write.key.raw in doubled for write in writes):
        message = "a source partition has keys in several spellings; all that have a value are written"
        problems.append(Problem(codes.SEVERAL_SPELLINGS, message))
    known = {view.key.raw for view in views}
    made = sorted({write.key.raw for write in writes if write.key.raw not in known})
    if made:
        new = counted(len(made), "key is", "keys are")
        message = f"{new} new, first {made[0].decode()}: a connector that spells them otherwise never looks"
        hint = "Let the connector write an offset first; then its own key is used."
        problems.append(Problem(codes.NEW_KEY, message, hint=hint))
    return problems


def show_edit(app: App, plan: EditPlan) -> Report:
    """Report the plan with its route and with the changes to the offsets."""
    return _with_route(show_plan(app, plan.writes), plan, plan.writes.kinds.plan)


def apply_edit(app: App, plan: EditPlan, again: Callable[[], OffsetWritePlan]) -> Report:
    """Write, by REST or to the topics, and read the raw keys back in either case."""
    send = send_by_rest if plan.route.via == REST else send_to_topics
    return _with_route(apply_plan(app, plan.writes, again, send=send), plan, plan.writes.kinds.result)


def _with_route(report: Report, plan: EditPlan, kind: Kind) -> Report:
    more: dict[str, object] = {
        "via": plan.route.via,
        "via_reason": plan.route.reason,
        "changes": [row for change in plan.changes for row in change.rows()],
        "as_of": [version_row(version) for version in plan.former] or UNSET,
    }
    return replace(report, data=kind.data(**asdict(report.data), **more))
