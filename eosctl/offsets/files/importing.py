"""`offsets import`: writes what a file holds into one store; planned, backed up and read back like every write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from eosctl.app import App
from eosctl.codes import Code
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.offsets import codes as topic_codes
from eosctl.core.offsets.records import IgnoredKey
from eosctl.core.offsets.views import PlannedWrite, Store
from eosctl.core.records import NewTopic, TopicDescription
from eosctl.core.wording import counted
from eosctl.engine.planned import PlannedWrites
from eosctl.errors import InputFileError, NotFoundError
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.apply import prepare_writes
from eosctl.offsets.files import codes
from eosctl.offsets.files.export import store_topic
from eosctl.offsets.files.rules import ImportPlan, OffsetsFile, Superseded, parse_offsets_file, plan_import
from eosctl.offsets.stores.gather import OffsetStores, StoresOf, read_settled
from eosctl.offsets.stores.targets import refuse_unfit_targets
from eosctl.offsets.write_rows import IMPORT
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden_keys
from eosctl.plan import Plan
from eosctl.report import Problem
from eosctl.state.backups import refuse_config

STDIN = "-"
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What to write where; `keep_partitions` puts each record on the partition that the file says.

    `rewrite` writes equal records too.
    """

    file: OffsetsFile
    store: str
    connectors: tuple[str, ...] = ()
    keep_partitions: bool = False
    rewrite: bool = False
    allowances: Allowances = NOTHING_WAIVED


def read_offsets_file(path: str, *, stdin: BinaryIO, connectors: Sequence[str] = ()) -> OffsetsFile:
    """The offsets in a file, `-` is `stdin`; raises InputFileError that names file and line."""
    name = "stdin" if path == STDIN else path
    try:
        content = stdin.read() if path == STDIN else Path(path).expanduser().read_bytes()
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    file = parse_offsets_file(content, name=name, connectors=connectors)
    for each in file.incoming:
        refuse_config(each.record.key, name=name)
    if not file.incoming and not file.keyless:
        whose = f" of {', '.join(connectors)}" if connectors else ""
        raise InputFileError(f"{name} holds no offsets{whose}", hint="`eosctl offsets export` writes such files.")
    return file


def prepare_import(app: App, request: ImportRequest) -> Plan:
    """The plan to write what a file holds; raises as `plan_offsets_import`."""
    plan = partial(plan_offsets_import, request=request)
    return prepare_writes(app, plan(app), lambda: plan(app.with_whole_timeout()))


def plan_offsets_import(app: App, request: ImportRequest) -> OffsetWritePlan:
    """Reads the store and decides per key; a missing topic is created like the global one.

    Raises InputFileError, NotFoundError, UsageError for an ambiguous store, RefusedError where an open transaction may
    hide what the store has.
    """
    found, topic = _gather(app, request)
    store = found.stores[topic]
    planned = plan_import(request.file, store, keep_partitions=request.keep_partitions, rewrite=request.rewrite)
    refuse_hidden_keys(app, store, (write.key.raw for write in planned.writes))
    creates: tuple[NewTopic, ...] = ()
    if topic not in found.descriptions and any(write.sends() for write in planned.writes):
        like = found.descriptions[found.global_topic]
        creates = (NewTopic(topic, like.partitions, like.replication_factor),)
    return OffsetWritePlan(
        kinds=IMPORT,
        writes=PlannedWrites.of(planned.writes),
        creates=creates,
        found=found,
        allowances=request.allowances,
        problems=tuple(_problems(request, planned)),
    )


def _gather(app: App, request: ImportRequest) -> tuple[OffsetStores, str]:
    with app.topics() as topics:
        topic, global_topic = store_topic(app, topics, request.store, request.connectors), app.target.offset_topic
        refuse_unfit_targets(app, topics, [topic])
        descriptions = dict(topics.describe([topic]))
        if topic not in descriptions:
            descriptions |= topics.describe([global_topic])
        if topic in descriptions:
            store, bounds = read_settled(app, topics, topic)
        else:
            store, bounds = Store(topic, _like_global(topic, global_topic, descriptions).partitions), ()
        found = StoresOf(
            cluster_id=topics.cluster_id(),
            global_topic=global_topic,
            stores={topic: store},
            bounds={topic: bounds},
            descriptions=descriptions,
            dedicated=DedicatedTopics(),
        )
    return found, topic


def _like_global(topic: str, global_topic: str, descriptions: dict[str, TopicDescription]) -> TopicDescription:
    if global_topic not in descriptions:
        raise NotFoundError(
            f"there is no topic {topic}, and no global offsets topic {global_topic} to make it like",
            hint="Name the worker's offset.storage.topic with --offset-topic, or create the topic (compacted) first.",
        )
    return descriptions[global_topic]


def _problems(request: ImportRequest, planned: ImportPlan) -> Iterable[Problem]:
    sent = [write for write in planned.writes if write.sends()]
    yield from _keyless(request.file)
    yield from _ignored(sent)
    yield from _superseded(planned.superseded)
    yield from _over_newer(planned.writes)
    yield from _deletions(request.file, sent)
    yield from _elsewhere(sent)


def _warning(code: Code, message: str, hint: str | None = None) -> Problem:
    return Problem(code, message, hint, severity="warning")


def _keyless(file: OffsetsFile) -> Iterator[Problem]:
    if file.keyless:
        message = f"{counted(len(file.keyless), 'record')} of {file.name} without a key"
        yield _warning(codes.NO_KEY, f"{message}: a compacted topic takes none; they are not imported")


def _ignored(sent: Iterable[PlannedWrite]) -> Iterator[Problem]:
    faults = [write.key.fault for write in sent if isinstance(write.key, IgnoredKey)]
    if faults:
        message = f"{len(faults)} of the keys are such that Connect ignores them ({', '.join(sorted(set(faults)))})"
        yield _warning(offset_codes.IGNORED_KEYS, f"{message}; they are written as they are")


def _superseded(superseded: Sequence[Superseded]) -> Iterator[Problem]:
    for each in superseded[:_MOST_SHOWN]:
        message = f"{each.incoming.place} is not written: {each.by.place} is newer and falls on the same key"
        yield _warning(codes.SUPERSEDED, message)
    if len(superseded) > _MOST_SHOWN:
        records = counted(len(superseded), "record is", "records are")
        yield _warning(codes.SUPERSEDED, f"{records} not written in all, as newer ones fall on the same keys")


def _over_newer(writes: Iterable[PlannedWrite]) -> Iterator[Problem]:
    older = sum(write.reason == "over_newer" for write in writes)
    if older:
        newer = counted(older, "offset of the store is", "offsets of the store are")
        over = "it" if older == 1 else "them"
        yield _warning(codes.OVER_NEWER, f"{newer} newer than what the file puts over {over}")


def _deletions(file: OffsetsFile, sent: Iterable[PlannedWrite]) -> Iterator[Problem]:
    deletions = sum(write.after is None for write in sent)
    if deletions and any(not each.spelled for each in file.incoming):
        message = f"{counted(deletions, 'offset is', 'offsets are')} null in the file and will be deleted"
        hint = "A worker's GET also answers null for offsets that it can't find under REST's spelling of the key."
        yield _warning(codes.DELETES, message, hint)


def _elsewhere(sent: Iterable[PlannedWrite]) -> Iterator[Problem]:
    """For keys that the topic has on another partition, too."""
    for write in sent:
        if write.before is not None and write.before.partition != write.partition:
            message = (
                f"topic {write.topic} has a key on partition {write.before.partition} too, its new record goes to "
                f"{write.partition}: a worker takes the one that it happens to read last"
            )
            hint = f"`eosctl offsets lint --store {quote(write.topic)}` gives the repair."
            yield _warning(topic_codes.SEVERAL_PARTITIONS, message, hint)
