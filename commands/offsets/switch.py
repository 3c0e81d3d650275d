"""`eosctl offsets switch`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.app import App
from eosctl.report import Report

from ..frame.confirm import settle
from ..frame.options import EosctlCommand, pass_app, write_options


@click.command("switch", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option("--to", "target", required=True, metavar="TOPIC|global", help="Where its offsets will be kept.")
@write_options
@pass_app
def switch(app: App, connector: str, target: str, *, yes: bool, dry_run: bool) -> Report:
    """Move a connector between offsets topics: no record lost, none delivered twice.

    Changing offsets.storage.topic alone makes a connector read its whole source again: Kafka takes nothing from the
    former topic. So: stop, wait until no worker has a task of it and fence the tasks' transactional ids, give the new
    topic what the one in use has, change the config, ask Connect whether it finds every offset, resume, and watch it
    run. A connector that was STOPPED or PAUSED is so again in the end.

    Nothing is stopped unless Connect would take the new config (the connector's own checks ask its source), and as far
    as ACLs tell, its clients may use the new topic; -w names their principals. Whoever keeps the config elsewhere (Git,
    Terraform, a Kubernetes resource) must change it there too: the next apply would go back to old offsets. Each step
    is in a journal. After a kill, or a step that failed, the same command goes on where it was; `--to` with the former
    topic goes back. What somebody has resumed or paused since stays so. Where the connector keeps its offsets there
    already, nothing is done, exit code 0; it is refused if that topic lacks some. --timeout is per step. Needs workers
    of Kafka 3.5 or newer.

    TOPIC must be one that keeps offsets: refused are the group's own topics, those that connectors write to, those
    that hold other records, and those that are not compacted. Of a connector whose config names Kafka brokers of its
    own (producer.override.bootstrap.servers) TOPIC is there; where that config refers to secrets which only a worker
    can resolve, TOPIC@PROFILE names a profile that leads there.

    Example: eosctl offsets switch -b kafka:9092 -g connect --connector orders-source --to orders-offsets
    """
    from eosctl.offsets.switch.apply import prepare_switch
    from eosctl.offsets.switch.plan import SwitchRequest

    return settle(prepare_switch(app, SwitchRequest(connector, target)), yes=yes, dry_run=dry_run)
