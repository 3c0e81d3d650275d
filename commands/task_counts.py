"""`eosctl task-counts`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from eosctl.core.allowances import Waiver
from eosctl.errors import UsageError

from .frame.confirm import run_plan
from .frame.options import EosctlGroup, pass_app, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.group("task-counts", cls=EosctlGroup)
def task_counts() -> None:
    """Show, check and write task-count records.

    Before the tasks of an exactly-once source connector start, the leader of the group fences the transactional ids
    of the tasks that ran before. Their number is in a record of the config topic (key tasks-fencing-CONNECTOR, value
    {"task-count": N}), which the leader writes after each round. Fencing is due when the newest task commit is later
    in the topic than that record. If the record is missing or too low, zombies (old tasks that still run somewhere)
    can keep writing.
    """


@task_counts.command("list")
@pass_app
def list_command(app: App) -> Report:
    """List each connector's record, and what the leader would do now.

    The exit code is 0 whatever is found. Sinks are listed, and have no record. Needs Kafka 3.3 or newer; without
    DESCRIBE on the transactional ids, alive_ids is null or incomplete.

    Example: eosctl task-counts list -b kafka:9092 -g connect-cluster
    """
    from eosctl.task_counts.gather import list_task_counts

    return list_task_counts(app)


@task_counts.command("show")
@click.argument("connector")
@pass_app
def show_command(app: App, connector: str) -> Report:
    """Show one connector's record in full: order, decision, the ids it implies, the ids that are alive.

    Needs Kafka 3.3 or newer.

    Example: eosctl task-counts show orders-source -b kafka:9092 -g connect-cluster
    """
    from eosctl.task_counts.gather import show_task_counts

    return show_task_counts(app, connector)


@task_counts.command("validate")
@click.option("--strict", is_flag=True, help="Exit 3 on informative findings, too.")
@pass_app
def validate_command(app: App, strict: bool) -> Report:
    """Check every record; exit 3 when there is an error or a warning, else 7 if something could not be seen.

    Codes: missing, too_low, mis_ordered, incomplete_task_set, implausible, wrong_type, unparsable, kip_text_key,
    kip_text_field, tombstoned; orphan and id_collision are informative. Needs Kafka 3.3 or newer.

    Example: eosctl task-counts validate -b kafka:9092 -g connect-cluster -o json
    """
    from eosctl.task_counts.gather import validate_task_counts

    return validate_task_counts(app, strict=strict)


@task_counts.command("replay")
@click.argument("file", required=False, type=click.File("rb"))
@click.option("--topic", is_flag=True, help="Read the config topic itself.")
@pass_app
def replay_command(app: App, file: IO[bytes] | None, topic: bool) -> Report:
    """Fold config-topic records exactly as a worker does (Kafka 3.8 to 4.3).

    FILE holds one JSON object per record and line ({"topic", "partition", "offset", "key", "value"}), or what kcat -J,
    rpk topic consume, kafka-dump-log.sh --print-data-log or kafka-console-consumer.sh with print.key=true prints; - is
    stdin. --topic also lists each record of an aborted transaction with the committed record that counts instead:
    preparing and disabled workers read both. Config values that are not known to be harmless are shown as ***.

    Example: eosctl task-counts replay connect-configs.ndjson -o json
    """
    from eosctl.task_counts.gather import replay_file, replay_topic

    if (file is None) == (not topic):
        raise UsageError("name either a FILE or --topic", hint="See `eosctl task-counts replay --help`.")
    return replay_topic(app) if file is None else replay_file(app, file, name=getattr(file, "name", "stdin"))


@task_counts.command("clean")
@write_options
@pass_app
def clean_command(app: App, yes: bool, dry_run: bool) -> Report:
    """Compact the config topic until it holds no bad task-count record.

    If workers can't read a task-count record or a commit of tasks (wrong_type, kip_text_field), each worker that starts
    misses the rest of the batch, and stays behind the config topic for ever. Overwriting the record does not help; only
    compaction removes it. Do not restart a worker until then. Running workers are not affected.

    A bad record that is the newest of its key is overwritten with the count that workers hold. Then segment.ms,
    min.cleanable.dirty.ratio and min.compaction.lag.ms of the topic are lowered, a record of a key that no worker
    knows closes the segment, and the topic is read until the records are gone: brokers check every
    log.cleaner.backoff.ms (15 s). The settings are restored, also after an error and Ctrl-C; after kill -9 the next
    run restores them, and `eosctl doctor` reports it. If --timeout ends first, the exit code is 4: run again.

    Needs Kafka 2.3 (brokers). ACLs: READ, WRITE, DESCRIBE_CONFIGS and ALTER_CONFIGS on the config topic; to overwrite
    a record also WRITE on the TransactionalId eosctl-config-GROUP (connect-cluster-GROUP with no workers).

    Example: eosctl task-counts clean -b kafka:9092 -g connect-cluster --timeout 2m --dry-run
    """
    from eosctl.task_counts.clean import prepare_clean

    return run_plan(prepare_clean(app), yes=yes, dry_run=dry_run)


@task_counts.command("write")
@click.argument("connector", required=False)
@click.option("--connector", "named", metavar="NAME", help="The same as CONNECTOR.")
@click.option(
    "--count", required=True, type=click.IntRange(0, 10_000), metavar="N", help="Task count to write in the record."
)
@waivers(Waiver.NO_FENCE)
@write_options
@pass_app
def write_command(
    app: App, connector: str | None, named: str | None, count: int, no_fence: bool, yes: bool, dry_run: bool
) -> Report:
    """Write a connector's record, after fencing the ids of the old one.

    If the record is newer than the newest task commit, the leader fences no id, whether that is right or not. So the
    write is refused while the connector has tasks, while the group rebalances, and if the count would leave out ids
    that are alive. eosctl writes under a transactional id of its own while workers are up, and under the leader's if
    there are none. If the record has this count already, nothing is written, also while tasks run: exit code 0. The
    ids of a connector that writes to another Kafka cluster are fenced there.

    Connect itself can fence a stopped connector's ids: see `eosctl fence --via connect`. Needs Kafka 3.3.
    ACLs: WRITE on the config topic and on the TransactionalId eosctl-config-GROUP (connect-cluster-GROUP with no
    workers), besides those of `eosctl fence`.

    Example: eosctl task-counts write orders-source --count 3 -b kafka:9092 -g connect-cluster --dry-run
    """
    from eosctl.task_counts.write import WriteRequest, prepare_write

    name = connector or named
    if name is None or (connector and named):
        raise UsageError("name one connector", hint="See `eosctl task-counts write --help`.")
    return run_plan(prepare_write(app, WriteRequest(name, count, fence=not no_fence)), yes=yes, dry_run=dry_run)
