"""`eosctl audit`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.app import App
from eosctl.audit.scope import AuditRequest
from eosctl.report import Report

from .frame.options import EosctlCommand, pass_app, pass_request


@click.command("audit", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC",
    help="An output topic (repeatable) [default: those that the workers know of, else those in its config].",
)  # fmt: skip
@click.option(
    "--offsets-topic", "offsets_topics", multiple=True, metavar="TOPIC",
    help="Look for its offsets in this topic too, say where they were before a switch (repeatable).",
)  # fmt: skip
@click.option(
    "--since", default="1h", show_default=True, metavar="TIME|AGE|OFFSET|beginning",
    help="Where to begin: 2026-11-21T08:00:00Z, an age (90m, 12h, 7d), an offset of each partition, or beginning.",
)  # fmt: skip
@click.option("--until", metavar="TIME|AGE|OFFSET", help="Where to end [default: the end of the log].")
@click.option(
    "--unique", metavar="FIELD[,FIELD]",
    help="Report values that come twice: id, value.after.id, key.id, header.id, value or key; several are unique "
    "together; auto for a known source.",
)  # fmt: skip
@click.option(
    "--sequence", metavar="FIELD",
    help="Report missing numbers too; numbers behind another text, as in task-0-17, are a sequence of that text's own.",
)  # fmt: skip
@click.option(
    "--report", metavar="FILE.html", type=click.Path(dir_okay=False),
    help="Also write a page with the transactions over time, to be kept as evidence.",
)  # fmt: skip
@click.option("--check-crcs", is_flag=True, help="Also compute each batch's checksum, which takes longer.")
@pass_app
@pass_request(AuditRequest)
def audit(app: App, request: AuditRequest) -> Report:
    """Prove from the log whether a connector was exactly-once.

    Reads the batches of the connector's output topics and offsets topic as the brokers hold them, aborted ones too, and
    joins them by producer id, epoch and transaction markers. Nothing that workers or the connector report counts.

    exactly_once (exit 0): every record of its tasks was committed in a transaction that also has a source offset.
    not_exactly_once (exit 3): there are records or offsets outside transactions, transactions without offsets, or
    batches of a producer that had a successor. unproven (exit 7): nothing is wrong, and something is not known: a
    producer that nobody knows, a partition that could not be read, a window without records.

    --unique and --sequence read the committed records as well, which takes as long as a consumer: a value that comes
    twice in a topic is a duplicate, a number that is missing a gap, and both are not_exactly_once; records without the
    field leave it unproven. Only the connector's own records count. --unique takes about 75 bytes of memory for each
    value, --sequence keeps the unbroken stretches only. --unique auto knows FileStream, JDBC, MirrorMaker 2, and
    Debezium's PostgreSQL, MySQL and MariaDB connectors. MirrorMaker 2 is always compared with its source topics,
    transaction by transaction.

    What retention, compaction or DeleteRecords removed can't be proven: the window that is proven is printed. Ctrl-C
    reports what was read so far (exit 130). Needs brokers of Kafka 2.5 or newer, READ on the topics, and DESCRIBE on
    the transactional ids.

    Example: eosctl audit -b kafka:9092 -g connect-cluster --connector orders-source --since 24h --report orders.html
    """
    from eosctl.audit.audit import audit as run_audit

    return run_audit(app, request)
