"""`eosctl workers`: parses, calls one operation, returns its report."""

from __future__ import annotations

import click

from eosctl.app import App
from eosctl.report import Report

from .frame.options import EosctlGroup, pass_app


@click.group("workers", cls=EosctlGroup)
def workers() -> None:
    """The workers of a Connect group and their mode.

    A worker's exactly.once.source.support is disabled, preparing or enabled. Every worker must be preparing before
    any is enabled; Connect itself checks nothing of that, and no request tells the mode. eosctl proves what can be
    proven: it lets each worker validate a source connector that requires exactly-once (nothing is created). A worker
    that objects is preparing or disabled (not_enabled); which of the two, only its own file (-w) tells.
    """


@workers.command("list")
@pass_app
def list_command(app: App) -> Report:
    """Members, leader, versions, and who runs which connector and task.

    Members and their work come from the group itself (DescribeGroups), version and health from each worker. LAG counts
    the records of the config topic after CONFIG-OFFSET, which a member tells at each rebalance and not in between.
    A URL that does not answer, redirects, or is of another cluster or group is named. One that no member advertises, of
    a load balancer or a forwarded port, is told by its connectors as another way to a member. --connect-map says where
    members are reached whose own URLs lead nowhere from here; -u with the address of each tells members apart that
    share a URL. With -u alone, without -b and -g, only these URLs are asked. Needs Kafka 2.4 or newer; health 3.9.

    Example: eosctl workers list -b kafka:9092 -g connect-cluster
    """
    from eosctl.checks.workers import list_workers

    return list_workers(app)


@workers.command("probe")
@pass_app
def probe_command(app: App) -> Report:
    """Each worker's exactly-once mode, with the evidence.

    enabled, not_enabled or unknown; with the workers' files (-w) also preparing and disabled. A file that contradicts
    what its worker does is a warning (file_contradicts_probe), and so is a standalone worker, which is of no group. Of
    the workers of a dedicated MirrorMaker, which have no REST interface, the mode is what their file says (-w). Exit
    code 0 whatever is found: `eosctl upgrade verify` is the check. Needs Kafka 3.3 or newer.

    Example: eosctl workers probe -u http://w1:8083 -u http://w2:8083 -w w1.properties -w w2.properties
    """
    from eosctl.checks.workers import probe_workers

    return probe_workers(app)
