"""`eosctl acls`: parses, calls one operation, returns its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from eosctl.core.acls.lines import AclRequest

from .frame.confirm import run_plan
from .frame.options import EosctlGroup, pass_app, pass_request, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.report import Report

_F = TypeVar("_F", bound=Callable[..., object])
_ROLES = (
    *("worker", "producer", "consumer", "admin"),
    *("observer", "fencer", "offset-writer", "config-writer", "aborter", "acl-writer"),
)


@click.group("acls", cls=EosctlGroup)
def acls() -> None:
    """Show, check and add the ACLs that exactly-once Connect needs.

    Connect has four principals, which may be one user or four: the worker itself, and the producer, the consumer and
    the admin client of each source connector (producer.*, consumer.*, admin.* in the worker's file, or *.override.* of
    the connector). Exactly-once adds rights on transactional ids: of connect-cluster-GROUP for workers, from the
    preparing step on, and of GROUP-CONNECTOR-TASK for the producer, and for the admin client, which fences zombies. If
    the admin client lacks these rights, the connector starts, and fails at its first reconfiguration.

    \b
    Roles of eosctl itself, for --role:
      observer       every command that only reads
      fencer         fence
      offset-writer  offsets merge, set, reset, import, restore, migrate
      config-writer  task-counts write, task-counts clean, rescue, upgrade apply
      aborter        txn abort, txn complete
      acl-writer     acls apply
    """


def _scope_options(function: _F) -> _F:
    """Add the options that all three commands share: which rights, of whom."""
    options = (
        click.option(
            "--for", "product", type=click.Choice(["streams", "flink"]),
            help="Rights of Kafka Streams applications, or of Flink sinks, in place of Connect's.",
        ),
        click.option(
            "--application", "applications", multiple=True, metavar="ID",
            help="With --for: an application.id of Streams, a transactionalIdPrefix of Flink (repeatable).",
        ),
        click.option(
            "--input-topic", "input_topics", multiple=True, metavar="TOPIC",
            help="With --for: a topic that the applications read; TOPIC* is a prefix (repeatable).",
        ),
        click.option(
            "--consumer-group", "groups", multiple=True, metavar="GROUP",
            help="With --for flink: the group.id of a source (repeatable).",
        ),
        click.option(
            "--connector", "connectors", multiple=True, metavar="NAME", help="A source connector (repeatable)."
        ),
        click.option(
            "--tasks", multiple=True, type=click.IntRange(1, 10_000), metavar="N",
            help="Number of tasks; once for all connectors, or once for each (default: from the config topic).",
        ),
        click.option("--all", "every", is_flag=True, help="Every source connector in the config topic."),
        click.option(
            "--role", "roles", multiple=True, type=click.Choice(_ROLES), metavar="ROLE",
            help=f"Role that needs rights (repeatable; default: the first four): {', '.join(_ROLES)}.",
        ),
        click.option(
            "--principal", "principals", multiple=True, metavar="ROLE=User:NAME",
            help="Principal of a role; User:NAME alone: of all other roles (default: users in the worker's file, -w).",
        ),
        click.option(
            "--to", "mode", type=click.Choice(["preparing", "enabled"]), default="enabled", show_default=True,
            help="The step of the upgrade that the rights are for.",
        ),
        click.option(
            "--output-topic", "output_topics", multiple=True, metavar="TOPIC",
            help="A topic that the connectors write to; TOPIC* is a prefix (repeatable; default: topics that they have "
            "written to, as a worker reports them, and those that their configs name).",
        ),
        click.option(
            "--dedicated-topic", metavar="PATTERN",
            help="Offsets topic of connectors that have none of their own, or one that only a worker can resolve: "
            "'offsets-{connector}'.",
        ),
        click.option("--prefixed", is_flag=True, help="One ACL for all tasks of a connector: GROUP-CONNECTOR-*."),
        click.option("--old-brokers", is_flag=True, help="Add IDEMPOTENT_WRITE, which brokers before Kafka 2.8 need."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@acls.command("generate")
@_scope_options
@click.option(
    "--format", "script", type=click.Choice(["table", "kafka-acls", "terraform"]), default="table", show_default=True,
    help="Table, kafka-acls commands, or YAML for for_each = yamldecode(file(...)).acls.",
)  # fmt: skip
@pass_app
@pass_request(AclRequest)
def generate_command(app: App, request: AclRequest, *, script: str) -> Report:
    """Print which rights are needed, for which principal, and why.

    Reads no ACLs; with --tasks (or --prefixed) it needs no cluster at all. If the cluster (-b) or a worker (-u) is
    given, tasks and topics are looked up: the offsets topic, the topics that a worker reports for the connector, and
    those that its config names (topic, topic.prefix, heartbeat and signal topics), which are optional if they may not
    be in use. A note says what fails without the right. Kafka's authorizers include DESCRIBE in READ and WRITE; the
    table lists it nevertheless. Prefixed ACLs are convenient; they also cover the ids of any connector with a name
    that begins with this one's and a dash.

    With --for streams or flink it prints what such exactly-once applications need, without contacting a cluster.

    \b
    Example: eosctl acls generate -g connect-cluster --connector orders --tasks 3 --format kafka-acls
    Example: eosctl acls generate --for streams --application billing --input-topic orders --output-topic bills
    """
    from eosctl.acls.check import generate_acls

    return generate_acls(app, request, script=None if script == "table" else script)


@acls.command("check")
@_scope_options
@click.option("--strict", is_flag=True, help="Exit 3 on warnings, too.")
@pass_app
@pass_request(AclRequest)
def check_command(app: App, request: AclRequest, *, strict: bool) -> Report:
    """Compare required rights with the cluster's ACLs.

    The exit code is 3 if a right is missing or denied, else 7 if not all required rights are known.

    Literal, prefixed and wildcard patterns, User:* and DENY, which always wins, are taken into account. A right that
    only some hosts have is a warning. Super users need no ACL, and Kafka does not report who they are. Needs DESCRIBE
    on the Cluster, and DESCRIBE on topics that may have to be created.

    Codes: acl_missing, acl_denied, acl_for_some_hosts, acl_denied_to_hosts, super_users_unknown, no_authorizer.

    \b
    Example: eosctl acls check -b kafka:9092 -g connect-cluster --all --principal User:connect
    Example: eosctl acls check -b kafka:9092 --for flink --application orders-sink --principal User:flink
    """
    from eosctl.acls.check import check_acls

    return check_acls(app, request, strict=strict)


@acls.command("apply")
@_scope_options
@write_options
@pass_app
@pass_request(AclRequest)
def apply_command(app: App, request: AclRequest, *, yes: bool, dry_run: bool) -> Report:
    """Add the ACLs that are missing, and no others.

    Each ACL is literal (prefixed with --prefixed, and for TOPIC*), for one principal, from any host. Nothing is
    removed: if a DENY takes a required right away, the command is refused and prints the line that removes the DENY.
    The ACLs are read back, and the lines that would remove them again are printed. Needs ALTER on the Cluster.

    Example: eosctl acls apply -b kafka:9092 -g connect-cluster --connector orders --principal User:connect --dry-run
    """
    from eosctl.acls.apply import prepare_acls

    return run_plan(prepare_acls(app, request), yes=yes, dry_run=dry_run)
