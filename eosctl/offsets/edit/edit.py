"""Plans and applies `offsets set` and `reset`: the writes of each key, and their route."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.java.json import encode_offset
from eosctl.core.offsets.names import DEDICATED
from eosctl.core.offsets.records import OffsetKey
from eosctl.core.offsets.typed import typed_offset, typed_partition
from eosctl.core.offsets.views import Flag, PlannedWrite, Store, connector_keys, offset_views
from eosctl.core.wording import counted
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import NotFoundError, UsageError
from eosctl.foreign import shell_word
from eosctl.offsets.apply import apply_plan, plan_to_write, send_to_topics
from eosctl.offsets.edit import codes
from eosctl.offsets.edit.changes import KeyChange, change_problems, key_changes, shape_refusal
from eosctl.offsets.edit.route import AUTO, REST, EditRoute, choose_route, refuse_sink, send_by_rest
from eosctl.offsets.edit.rules import plan_reset, plan_set, spellings
from eosctl.offsets.history.as_of import AsOf, former_versions
from eosctl.offsets.history.events import Version
from eosctl.offsets.history.rows import version_row
from eosctl.offsets.listing import refuse_unknown
from eosctl.offsets.stores.gather import OffsetStores, gather_stores
from eosctl.offsets.write_rows import RESET, SET, WriteKinds
from eosctl.offsets.writes import (
    OffsetWritePlan,
    refuse_elsewhere,
    refuse_hidden,
    refuse_unfit,
    show_plan,
    write_plan,
)
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report


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
    former = former_versions(app, request.connector, request.as_of) if request.as_of else []
    wanted += [(each.key, each.record.value or b"") for each in former]
    if len({key.identity for key, _value in wanted}) < len(wanted):
        raise UsageError("one source partition was given twice", hint="Give each --partition one --offset.")
    found = _gather(app, request.connector)
    stores = found.rows(request.connector)
    writes = [write for key, value in wanted for write in plan_set(stores, key, value)]
    return replace(_edit_plan(app, SET, found, writes, request=request), former=tuple(former))


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
    more: dict[str, Any] = {
        "via": plan.route.via,
        "via_reason": plan.route.reason,
        "changes": [row for change in plan.changes for row in change.rows()],
        "as_of": [version_row(version) for version in plan.former] or UNSET,
    }
    return replace(report, data=kind.data(**asdict(report.data), **more))
