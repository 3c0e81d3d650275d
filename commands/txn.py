"""`eosctl txn`: parses, calls one operation, returns its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct
from msgspec.structs import asdict

from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.errors import UsageError

from .frame.confirm import run_plan
from .frame.options import Duration, EosctlGroup, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report
    from eosctl.txn.plan import EndRequest

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
)


_F = TypeVar("_F", bound=Callable[..., object])
_WAIVED_WITH_HANGING = frozenset({Waiver.HIDDEN_ID, Waiver.LOSE_COMMITTED, Waiver.UNSEEN_PARTS})
_PLACE = (
    click.option("--partition", type=click.IntRange(min=0), metavar="N", help="The partition."),
    click.option(
        "--start-offset",
        type=click.IntRange(min=0),
        metavar="OFFSET",
        help="First offset of the open transaction; or give the next three options.",
    ),
    click.option("--producer-id", type=int, metavar="ID", help="Producer id of the transaction; needs both epochs."),
    click.option("--producer-epoch", type=int, metavar="N", help="Producer epoch of the transaction."),
    click.option("--coordinator-epoch", type=int, metavar="N", help="Coordinator epoch of this partition's marker."),
)
_ONE_OR_ALL = "`eosctl txn abort --hanging` aborts all that `eosctl txn hanging` finds; else one is named."


@click.group("txn", cls=EosctlGroup)
def txn() -> None:
    """List, describe and abort transactions; find hanging ones.

    A transaction is known in two places: its coordinator holds the transactional id, the producer id and epoch, and the
    state; the leader of each partition knows which producers have an open transaction there. While a transaction is
    open, read_committed consumers stop before it, at the last stable offset (LSO). A transaction that is open on a
    partition and unknown to its coordinator is hanging: `txn abort` ends it (KIP-664), or `txn complete`, if its
    coordinator has committed it and a marker was never written.
    """


@txn.command("list")
@click.option(
    "--state", "states", type=click.Choice(_STATES, case_sensitive=False), multiple=True, metavar="STATE",
    help=f"Only transactions in this state (repeatable): {', '.join(_STATES)}.",
)  # fmt: skip
@click.option(
    "--producer-id",
    "producer_ids",
    type=int,
    multiple=True,
    metavar="ID",
    help="Only transactions of this producer (repeatable).",
)
@click.option(
    "--open-longer-than",
    type=Duration(),
    metavar="DURATION",
    help="Only transactions open for longer than this (Kafka 3.8).",
)
@click.option("--match", metavar="REGEX", help="Only ids that match as a whole (RE2; Kafka 4.1).")
@click.option("--client-side", is_flag=True, help="Filter here if the brokers can't; works with any version.")
@pass_app
def list_command(
    app: App,
    states: tuple[str, ...],
    producer_ids: tuple[ProducerId, ...],
    open_longer_than: float | None,
    match: str | None,
    client_side: bool,
) -> Report:
    """List the transactional ids of all coordinators.

    Ids of this Connect group are shown with their connector and task, or as the leader's. Brokers leave out ids that
    you may not DESCRIBE. If a broker is down, the rest is listed with a warning of what is missing, and exit code 7.
    Needs Kafka 3.0 or newer.

    Example: eosctl txn list -b kafka:9092 --state Ongoing --open-longer-than 5m --client-side
    """
    from eosctl.txn.list import ListFilter, list_transactions

    longer_than_ms = None if open_longer_than is None else int(open_longer_than * 1000)
    return list_transactions(app, ListFilter(states, producer_ids, longer_than_ms, match, client_side))


@txn.command("applications")
@click.option(
    "--describe-all", is_flag=True, help="Ask coordinators for every id, not for 20 idle ones of each application."
)
@click.option("--no-remember", is_flag=True, help="Don't keep the counts; growth is measured from an older run.")
@pass_app
def applications_command(app: App, describe_all: bool, no_remember: bool) -> Report:
    """Group all transactional ids by the application that uses them.

    Recognised by their names: Connect tasks and leaders, Flink sinks (both naming strategies) and the older
    FlinkKafkaProducer, Kafka Streams (exactly_once and exactly_once_v2), Spring; others by their common prefix. A `?`
    marks a guess from the shape of the names; `A or B?` means that nothing shows which one it is. Shows which ids grow,
    expire, share a prefix, or have timeouts above what brokers allow. Brokers leave out ids that you may not DESCRIBE.
    Needs Kafka 3.0 or newer.

    Example: eosctl txn applications -b kafka:9092
    """
    from eosctl.txn.applications.report import ApplicationsRequest, list_applications

    return list_applications(app, ApplicationsRequest(describe_all, not no_remember))


@txn.command("describe")
@click.argument("transactional_ids", metavar="TXN_ID...", nargs=-1, required=True)
@pass_app
def describe_command(app: App, transactional_ids: tuple[TransactionalId, ...]) -> Report:
    """Show state, producer id, epoch, timeout and open partitions of each id.

    The timeout shows who used an id last: 90000 is Connect's own fencing, 30000 is eosctl's, 60000 a task's start
    (unless overridden). Needs Kafka 3.0 or newer, and DESCRIBE on each TransactionalId.

    Example: eosctl txn describe connect-cluster-orders-source-0 -b kafka:9092
    """
    from eosctl.txn.list import describe_transactions

    return describe_transactions(app, transactional_ids)


@txn.command("producers")
@click.option("--topic", required=True, metavar="TOPIC", help="The topic; its partition leaders are asked.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition (default: all).")
@pass_app
def producers_command(app: App, topic: str, partition: int | None) -> Report:
    """List the producers known to partition leaders, and their open transactions.

    Needs Kafka 3.0 or newer, and READ on the topic.

    Example: eosctl txn producers --topic connect-offsets --partition 7 -b kafka:9092
    """
    from eosctl.txn.partitions import list_producers

    return list_producers(app, topic, partition)


@txn.command("hanging")
@click.option("--topic", metavar="TOPIC", help="Check this topic only (default: every partition of the cluster).")
@click.option("--all", "all_topics", is_flag=True, help="Check every partition of the cluster (the default).")
@click.option(
    "--max-transaction-timeout",
    type=Duration(),
    default="15m",
    show_default=True,
    help="Ignore younger transactions, unless their coordinator's state proves that nothing will end them; give at "
    "least the brokers' transaction.max.timeout.ms.",
)
@pass_app
def hanging_command(app: App, topic: str | None, all_topics: bool, max_transaction_timeout: float) -> Report:
    """Find open transactions that no coordinator knows (KIP-664), or that theirs does not end; exit 3 if there are any.

    Long-running transactions are not listed: their coordinator will end them, unless its end has been decided
    (PrepareCommit, PrepareAbort) for more than a minute, or due by the timeout: these have the reason not_ended, and
    the most probable cause is said. One whose coordinator has moved on (a
    newer producer epoch) or is done (CompleteCommit, CompleteAbort) is listed at once. If a broker is down, its
    partitions are listed with the reason not_checked, and the exit code is 7. Needs Kafka 3.0 or newer, and READ on the
    topics.

    Example: eosctl txn hanging -b kafka:9092
    """
    from eosctl.txn.partitions import list_hanging

    if topic is not None and all_topics:
        raise UsageError("--topic and --all contradict each other", hint="Without either it looks at every partition.")
    return list_hanging(app, topic, max_transaction_timeout_ms=int(max_transaction_timeout * 1000))


class _Waived(Struct, frozen=True):
    """The checks that are waived, by their options."""

    force: bool = False
    unread_coordinator: bool = False
    hidden_id: bool = False
    lose_committed: bool = False
    unseen_parts: bool = False
    only_this_partition: bool = False

    def flags(self) -> frozenset[Waiver]:
        return frozenset(waiver for waiver in Waiver if getattr(self, waiver.option, False))


class _Place(Struct, frozen=True):
    """A partition of a transaction, and what identifies the transaction there."""

    topic: str | None
    partition: int | None
    start_offset: int | None
    producer_id: ProducerId | None
    producer_epoch: int | None
    coordinator_epoch: int | None

    def names_one(self) -> bool:
        return any(value is not None for name, value in asdict(self).items() if name != "topic")

    def request(self, waived: _Waived, *, commit: bool = False) -> EndRequest:
        from eosctl.txn.plan import EndRequest

        if self.topic is None or self.partition is None:
            raise UsageError("one transaction needs --topic and --partition", hint=_ONE_OR_ALL)
        by_producer = (self.producer_id, self.producer_epoch, self.coordinator_epoch)
        return EndRequest(
            self.topic, self.partition, self.start_offset, *by_producer, waived=waived.flags(), commit=commit
        )


def _one_transaction(function: _F) -> _F:
    """Add the options that name one transaction by its place on a partition."""
    for option in reversed(_PLACE):
        function = option(function)
    return function


@txn.command("abort")
@click.option("--topic", metavar="TOPIC", help="The topic; with --hanging only what is open on it (default: all).")
@_one_transaction
@click.option("--hanging", is_flag=True, help="Abort all that `txn hanging` finds; one plan, one question.")
@click.option(
    "--older-than",
    "--max-transaction-timeout",
    "older_than",
    type=Duration(),
    metavar="DURATION",
    help="With --hanging: ignore younger ones, as `txn hanging` does (default: 15m, as of transaction.max.timeout.ms).",
)
@waivers(
    *(Waiver.FORCE, Waiver.UNREAD_COORDINATOR, Waiver.HIDDEN_ID, Waiver.LOSE_COMMITTED),
    *(Waiver.UNSEEN_PARTS, Waiver.ONLY_THIS_PARTITION),
)
@write_options
@pass_request(_Place)
@pass_request(_Waived)
@pass_app
def abort_command(
    app: App,
    place: _Place,
    waived: _Waived,
    hanging: bool,
    older_than: float | None,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Abort hanging transactions: each partition's leader writes an ABORT marker.

    Aborts one transaction, named by one of its partitions and its first offset or its producer there, or with --hanging
    every one that `txn hanging` finds. A transaction is ended on all partitions where its producer id and epoch are
    open, on those of offsets last, so that no worker continues before.

    Refused (exit code 6), unless the flag in brackets is given: a transaction that its coordinator has open, which
    `eosctl fence` ends (--force); one whose coordinator can't be asked (--unread-coordinator); one without a listed id
    if __transaction_state can't be read, as brokers leave out ids that you may not DESCRIBE (--hidden-id); one that its
    coordinator has committed, or may have, for which there is `eosctl txn complete` (--lose-committed); one that may be
    open on partitions that can't be seen (--unseen-parts). If DESCRIBE is denied for a single topic, nothing shows that
    the topic exists.

    The result shows the LSO before and after, and an outcome per partition; the exit code is 7 if some could not be
    aborted. Needs Kafka 3.0 or newer, READ on the topics and on __transaction_state, and ALTER on the cluster
    (CLUSTER_ACTION before 3.8).

    \b
    Example: eosctl txn abort --topic connect-offsets --partition 7 --start-offset 4711 -b kafka:9092
    Example: eosctl txn abort --hanging --older-than 1h -b kafka:9092
    """
    from eosctl.txn.apply import prepare_abort_hanging, prepare_end
    from eosctl.txn.plan import HangingRequest

    if hanging:
        if waived.flags() - _WAIVED_WITH_HANGING or place.names_one():
            raise UsageError("--hanging takes no options that are about one transaction", hint=_ONE_OR_ALL)
        every = HangingRequest(place.topic, waived=waived.flags())
        if older_than is not None:
            every = HangingRequest(place.topic, int(older_than * 1000), waived.flags())
        return run_plan(prepare_abort_hanging(app, every), yes=yes, dry_run=dry_run)
    if older_than is not None:
        raise UsageError("one transaction takes no --older-than", hint=_ONE_OR_ALL)
    return run_plan(prepare_end(app, place.request(waived)), yes=yes, dry_run=dry_run)


@txn.command("complete")
@click.option("--as-decided", is_flag=True, help="Commit what its coordinator has committed, and nothing else.")
@click.option("--topic", metavar="TOPIC", help="The topic.")
@_one_transaction
@waivers(Waiver.UNREAD_COORDINATOR, Waiver.UNSEEN_PARTS)
@write_options
@pass_request(_Place)
@pass_request(_Waived)
@pass_app
def complete_command(
    app: App,
    place: _Place,
    waived: _Waived,
    as_decided: bool,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Write the missing COMMIT markers of a committed transaction.

    When the broker with the only replica of a partition stops, its coordinator may answer "committed" and skip the
    markers ("likely deleted already and hence can be skipped"; Kafka 4.3.1 and 4.4.0). The transaction stays open on
    its partitions, although the application has gone on: an abort would lose its records, or deliver them twice.

    The decision is read from __transaction_state itself: a record of PrepareCommit or CompleteCommit with exactly this
    producer id and epoch; producers of Kafka 4.0 or newer have one epoch per transaction. Without such a record the
    command is refused (exit code 6), and so is a transaction that its coordinator has open. The records that prove the
    decision are saved to a file first. Markers are written on all partitions where the transaction is open, those of
    offsets last.

    Needs Kafka 3.0 or newer, READ on the topics and on __transaction_state, and ALTER on the cluster (CLUSTER_ACTION
    before 3.8).

    Example: eosctl txn complete --as-decided --topic orders --partition 0 --start-offset 4711 -b kafka:9092
    """
    from eosctl.txn.apply import prepare_end

    if not as_decided:
        raise UsageError("the only way to complete a transaction is as it was decided", hint="Add --as-decided.")
    return run_plan(prepare_end(app, place.request(waived, commit=True)), yes=yes, dry_run=dry_run)


@txn.command("coordinator")
@click.argument("transactional_ids", metavar="TXN_ID...", nargs=-1, required=True)
@pass_app
def coordinator_command(app: App, transactional_ids: tuple[TransactionalId, ...]) -> Report:
    """Show hash, partition of __transaction_state and coordinator of each id.

    The ids need not exist. Needs DESCRIBE on each TransactionalId, and on the topic __transaction_state for its
    number of partitions. Works on Kafka 2.6 or newer.

    Example: eosctl txn coordinator connect-cluster-connect -b kafka:9092
    """
    from eosctl.txn.list import find_coordinators

    return find_coordinators(app, transactional_ids)


@txn.command("log")
@click.argument("transactional_ids", metavar="[TXN_ID]...", nargs=-1)
@click.option("--prefix", metavar="PREFIX", help="Only ids that start with PREFIX.")
@click.option("--all-records", is_flag=True, help="Print the whole log, not only the newest record of each id.")
@pass_app
def log_command(
    app: App, transactional_ids: tuple[TransactionalId, ...], prefix: str | None, all_records: bool
) -> Report:
    """Show the coordinators' own records, decoded from __transaction_state.

    Use it when a coordinator does not answer, and for what coordinators do not report: when an id was last used, and
    its former producer ids. Reads records v0 and v1 (Kafka 0.11 to 4.3); needs READ and DESCRIBE on
    __transaction_state.

    Example: eosctl txn log connect-cluster-orders-source-0 --all-records -b kafka:9092
    """
    from eosctl.txn.log import LogRequest, read_transaction_log

    return read_transaction_log(app, LogRequest(transactional_ids, prefix, all_records))
