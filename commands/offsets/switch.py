"""`eosctl offsets switch`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.command("switch", cls=EosctlCommand)
@click.option("--connector", required=True, metavar="NAME", help="The source connector.")
@click.option("--to", "target", required=True, metavar="TOPIC|global", help="The new offsets topic, or global.")
@write_options
@pass_app
def switch(app: App, connector: str, target: str, *, yes: bool, dry_run: bool) -> Report:
    """Move a connector between offsets topics: no record lost, none delivered twice.

    Changing offsets.storage.topic alone makes a connector read its whole source again: Kafka copies nothing from the
    former topic. This command stops the connector, waits until no worker has a task of it, fences the tasks'
    transactional ids, copies the offsets of the topic in use to the new topic, changes the config, asks Connect whether
    it finds every offset, resumes the connector, and waits until it runs. A connector that was STOPPED or PAUSED is
    left in that state.

    The connector is stopped only if Connect accepts the new config (the connector's own checks may connect to its
    source) and, as far as ACLs show it, its clients may use the new topic; -w names their principals. If you keep the
    config elsewhere (Git, Terraform, a Kubernetes resource), change it there, too: the next apply would return to old
    offsets. Each step is in a journal: after a kill or a failed step, the same command continues; `--to` with the
    former topic goes back. A connector that somebody has resumed or paused since is left in that state. If the
    connector uses that topic already, nothing is done and the exit code is 0; the command is refused if the topic lacks
    offsets. --timeout is per step. Needs workers of Kafka 3.5 or newer.

    The config goes to workers that you named (-u, a profile, --connect-map), or to all with --connect-trust-discovered;
    it is refused for one that only the group names.

    TOPIC must be a compacted topic for offsets. The group's own topics, topics that connectors write to, and topics
    that hold other records are refused. If the connector's config names Kafka brokers of its own
    (producer.override.bootstrap.servers), TOPIC is on those; if that config refers to secrets that only a worker can
    resolve, TOPIC@PROFILE names a profile for those brokers.

    Example: eosctl offsets switch -b kafka:9092 -g connect -u http://w1:8083 --connector orders --to orders-offsets
    """
    from eosctl.offsets.switch.apply import prepare_switch
    from eosctl.offsets.switch.plan import SwitchRequest

    return run_plan(prepare_switch(app, SwitchRequest(connector, target)), yes=yes, dry_run=dry_run)
