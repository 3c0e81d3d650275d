"""`eosctl rescue`: parses, plans, asks, applies, returns the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .frame.confirm import run_plan
from .frame.options import EosctlCommand, pass_app, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("rescue", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The connector; all of its tasks are FAILED.")
@write_options
@pass_app
def rescue(app: App, connector: str, yes: bool, dry_run: bool) -> Report:
    """Recover a connector that Connect can't fence.

    Before the tasks of an exactly-once source start, Connect fences those that ran before: about one transactional id
    per second and broker (Kafka 3.7+), in one round of at most 90 s. With more than about 90 recorded tasks no round
    ends: every task goes FAILED with "Failed to perform zombie fencing", and each restart begins at the first id again.

    rescue recognises this, fences the recorded ids itself, writes the task-count record that Connect could not write,
    restarts the failed tasks and waits until each has taken its id. It refuses any other case and shows what it found.
    It also prints the permanent fix: make Connect's own fencing faster. Each step is in a journal: after a kill or a
    failed step, the same command reports what was done and continues. --timeout is per step. The ids of a connector
    that writes to another Kafka cluster are fenced there.

    Needs Kafka 3.3 or newer. ACLs: WRITE on the config topic and on the TransactionalId eosctl-config-GROUP, besides
    those of `eosctl fence`.

    Example: eosctl rescue --connector orders-source -b kafka:9092 -g connect-cluster --dry-run
    """
    from eosctl.rescue.apply import prepare_rescue

    return run_plan(prepare_rescue(app, connector), yes=yes, dry_run=dry_run)
