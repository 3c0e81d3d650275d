"""`eosctl txn`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.errors import UsageError
from eosctl.report import Report

from .frame.confirm import settle
from .frame.options import Duration, EosctlGroup, pass_app, waivers, write_options

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
)


_ONE_OR_ALL = "`eosctl txn abort --hanging` aborts all that `eosctl txn hanging` finds; else one is named."


@click.group("txn", cls=EosctlGroup)
def txn() -> None:
    """List, describe and abort transactions; find hanging ones.

    A transaction is known in two places: its coordinator holds the transactional id, the producer id and epoch, and
    the state; each partition holds which producers have written there in an open transaction. While a transaction is
    open, read_committed consumers stop before it, at the last stable offset (LSO). A transaction that is open on a
    partition and unknown to its coordinator is hanging: only `txn abort` ends it (KIP-664).
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
@click.option("--no-remember", is_flag=True, help="Don't keep what was counted: growth is measured from an older look.")
@pass_app
def applications_command(app: App, describe_all: bool, no_remember: bool) -> Report:
    """Group all transactional ids by the application that uses them.

    Recognised by their names: Connect tasks and leaders, Flink sinks (both naming strategies) and the older
    FlinkKafkaProducer, Kafka Streams (exactly_once and exactly_once_v2), Spring; others by their common prefix. A `?`
    means that only the shape of the names says so, and `A or B?` that nothing shows which one it is. Shows which ids
    grow, expire, share a prefix, or have timeouts above what brokers allow. Brokers leave out ids that you may not
    DESCRIBE. Needs Kafka 3.0 or newer.

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
    help="Ignore younger transactions; give at least the brokers' transaction.max.timeout.ms.",
)
@pass_app
def hanging_command(app: App, topic: str | None, all_topics: bool, max_transaction_timeout: float) -> Report:
    """Find open transactions that no coordinator knows (KIP-664); exit 3 if there are any.

    Long-running transactions are not listed: their coordinator will end them. If a broker is down, its partitions are
    listed with the reason not_checked, and the exit code is 7. Needs Kafka 3.0 or newer, and READ on the topics.

    Example: eosctl txn hanging -b kafka:9092
    """
    from eosctl.txn.partitions import find_hanging_transactions

    if topic is not None and all_topics:
        raise UsageError("--topic and --all contradict each other", hint="Without either it looks at every partition.")
    return find_hanging_transactions(app, topic, max_transaction_timeout_ms=int(max_transaction_timeout * 1000))


@txn.command("abort")
@click.option("--topic", metavar="TOPIC", help="The topic; with --hanging only transactions on it (default: all).")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="The partition.")
@click.option(
    "--start-offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="First offset of the open transaction; or give the next three options.",
)
@click.option("--producer-id", type=int, metavar="ID", help="Producer id of the transaction; needs both epochs.")
@click.option("--producer-epoch", type=int, metavar="N", help="Producer epoch of the transaction.")
@click.option("--coordinator-epoch", type=int, metavar="N", help="Coordinator epoch to write in the ABORT marker.")
@click.option("--hanging", is_flag=True, help="Abort all that `txn hanging` finds; one plan, one question.")
@click.option(
    "--older-than",
    type=Duration(),
    metavar="DURATION",
    help="With --hanging: ignore younger transactions (default: 15m, the default of transaction.max.timeout.ms).",
)
@waivers(Waiver.FORCE)
@write_options
@pass_app
def abort_command(
    app: App,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    producer_id: ProducerId | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    hanging: bool,
    older_than: float | None,
    force: bool,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Abort hanging transactions: each partition's leader writes an ABORT marker.

    One transaction, named by its partition and its first offset or its producer; or with --hanging every one that
    `txn hanging` finds. A transaction that its coordinator still knows is refused: use `eosctl fence` for that. Any is
    refused while a coordinator can't be asked, for it may know the transaction. The result shows the LSO before and
    after, and with --hanging an outcome per transaction: exit 7 where some could not be aborted. Needs Kafka 3.0 or
    newer, READ on the topics and ALTER on the cluster (CLUSTER_ACTION before 3.8). --hanging leaves those without a
    listed id alone unless the principal may DESCRIBE every TransactionalId: brokers list no others.

    \b
    Example: eosctl txn abort --topic connect-offsets --partition 7 --start-offset 4711 -b kafka:9092
    Example: eosctl txn abort --hanging --older-than 1h -b kafka:9092
    """
    one = (partition, start_offset, producer_id, producer_epoch, coordinator_epoch)
    if hanging:
        if force or any(value is not None for value in one):
            raise UsageError("--hanging takes no options but --topic and --older-than", hint=_ONE_OR_ALL)
        from eosctl.txn.abort_hanging import HangingRequest, prepare_abort_hanging

        request = HangingRequest(topic) if older_than is None else HangingRequest(topic, int(older_than * 1000))
        return settle(prepare_abort_hanging(app, request), yes=yes, dry_run=dry_run)
    if topic is None or partition is None or older_than is not None:
        raise UsageError("one transaction needs --topic and --partition, and takes no --older-than", hint=_ONE_OR_ALL)
    from eosctl.txn.abort import AbortRequest, prepare_abort

    single = AbortRequest(topic, partition, start_offset, producer_id, producer_epoch, coordinator_epoch, force)
    return settle(prepare_abort(app, single), yes=yes, dry_run=dry_run)


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
