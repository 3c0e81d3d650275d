"""`eosctl workers`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .frame.options import EosctlGroup, pass_app

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report


@click.group("workers", cls=EosctlGroup)
def workers() -> None:
    """Show the workers of a Connect group and their modes.

    A worker's exactly.once.source.support is disabled, preparing or enabled. Every worker must be preparing before any
    is enabled; Connect does not check this, and no request reports the mode. eosctl proves what can be proven: it lets
    each worker validate a source connector that requires exactly-once (nothing is created). A worker that objects is
    preparing or disabled (not_enabled); only its own file (-w) shows which of the two.
    """


@workers.command("list")
@pass_app
def list_command(app: App) -> Report:
    """List members, leader, versions, and the connectors and tasks of each member.

    Members and their work come from the group itself (DescribeGroups), version and health from each worker. LAG counts
    the records of the config topic after CONFIG-OFFSET, which a member reports at each rebalance and not in between.

    A warning names each URL that does not answer, redirects, or belongs to another cluster or group. A URL that no
    member advertises (a load balancer, a forwarded port) is recognised by its connectors as another way to a member.
    Use --connect-map for members that can't be reached from here at their own URLs, and -u with each address for
    members that share a URL or an address: what answers there proves none of them. With -u alone, without -b and -g,
    only these URLs are asked. Needs Kafka 2.4 or newer; health 3.9.

    Example: eosctl workers list -b kafka:9092 -g connect-cluster
    """
    from eosctl.checks.workers import list_workers

    return list_workers(app)


@workers.command("probe")
@pass_app
def probe_command(app: App) -> Report:
    """Show each worker's exactly-once mode, with the evidence.

    The mode is enabled, not_enabled or unknown; with the workers' files (-w) also preparing or disabled. A file that
    contradicts its worker is a warning (file_contradicts_probe), and so are a standalone worker, which is in no group,
    and a plugin that the worker can't load (plugin_not_loaded).
    The workers of a dedicated MirrorMaker have no REST interface; their mode is read from their file (-w). The exit
    code is 0 whatever is found; `eosctl upgrade verify` is the check. Needs Kafka 3.3 or newer.

    Example: eosctl workers probe -u http://w1:8083 -u http://w2:8083 -w w1.properties -w w2.properties
    """
    from eosctl.checks.workers import probe_workers

    return probe_workers(app)
