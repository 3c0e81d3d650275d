"""`eosctl audit`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eosctl.audit.scope import AuditRequest

from .frame.options import EosctlCommand, pass_app, pass_request

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("audit", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC",
    help="An output topic (repeatable) [default: those that the workers know of, else those in its config].",
)  # fmt: skip
@click.option(
    "--offsets-topic", "offsets_topics", multiple=True, metavar="TOPIC",
    help="Also look for its offsets in this topic, for example the one before a switch (repeatable).",
)  # fmt: skip
@click.option(
    "--since", default="1h", show_default=True, metavar="TIME|AGE|OFFSET|beginning",
    help="Where to begin: 2026-11-21T08:00:00Z, an age (90m, 12h, 7d), an offset of each partition, or beginning.",
)  # fmt: skip
@click.option("--until", metavar="TIME|AGE|OFFSET", help="Where to end [default: the end of the log].")
@click.option(
    "--unique", metavar="FIELD[,FIELD]",
    help="Report values that occur twice: id, value.after.id, key.id, header.id, value or key; several are unique "
    "together; auto for a known source.",
)  # fmt: skip
@click.option(
    "--sequence", metavar="FIELD",
    help="Report missing numbers too; numbers behind another text, as in task-0-17, are a sequence of that text's own.",
)  # fmt: skip
@click.option(
    "--report", metavar="FILE.html", type=click.Path(dir_okay=False),
    help="Also write an HTML page with the transactions over time, as evidence.",
)  # fmt: skip
@click.option("--check-crcs", is_flag=True, help="Also compute each batch's checksum, which takes longer.")
@pass_app
@pass_request(AuditRequest)
def audit(app: App, request: AuditRequest) -> Report:
    """Prove from the log whether a connector was exactly-once.

    Reads the batches of the connector's output topics and offsets topic as the brokers hold them, aborted ones too, and
    joins them by producer id, epoch and transaction markers. Reports of workers or the connector do not count.

    exactly_once (exit 0): every record of its tasks was committed in a transaction that also has a source offset.
    not_exactly_once (exit 3): there are records or offsets outside transactions, transactions without offsets, or
    batches of a producer that had a successor. unproven (exit 7): nothing is wrong, but something is not known: an
    unknown producer, a partition that could not be read, a window without records.

    --unique and --sequence read the committed records as well, which takes as long as a consumer: a value that occurs
    twice in a topic is a duplicate, a missing number is a gap, and either is not_exactly_once; if records lack the
    field, the verdict is unproven. Only the connector's own records count. --unique takes about 75 bytes of memory for
    each value, --sequence keeps only the unbroken ranges. --unique auto knows FileStream, JDBC, MirrorMaker 2, and
    Debezium's PostgreSQL, MySQL and MariaDB connectors. MirrorMaker 2 is always compared with its source topics,
    transaction by transaction.

    Records that retention, compaction or DeleteRecords removed can't be audited: the proven window is printed. Ctrl-C
    reports what was read so far (exit 130). Needs brokers of Kafka 2.5 or newer, READ on the topics, and DESCRIBE on
    the transactional ids.

    Example: eosctl audit -b kafka:9092 -g connect-cluster --connector orders-source --since 24h --report orders.html
    """
    from eosctl.audit.audit import audit as run_audit

    return run_audit(app, request)
