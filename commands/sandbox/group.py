"""`eosctl sandbox` and `eosctl demo`: a real single-node Kafka and real Connect workers on loopback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from eosctl.core.workers.modes import TARGETS
from eosctl.errors import UsageError

from ..frame.options import EosctlCommand, EosctlGroup
from ..frame.session import Session

if TYPE_CHECKING:
    from eosctl.report import Report

_MODES = [mode.value for mode in TARGETS]
_name = click.option(
    "--name",
    metavar="NAME",
    default="default",
    show_default=True,
    help="Name of the sandbox; each has its own processes.",
)


@click.group(cls=EosctlGroup)
def sandbox() -> None:
    """Run a real Kafka and real Connect workers on this machine.

    Everything listens on loopback, on free ports; the jars are the ones Kafka publishes, checked against a lock file
    and cached. A sandbox keeps running after the command that started it, even after a crash of eosctl: use `status`
    and `down`. Workers require a password that is made for the sandbox; `status` prints where it is.
    """


@sandbox.command("up")
@click.option(
    "--kafka-version", metavar="V", help="Kafka and Connect version (default: the newest with its own connectors)."
)
@click.option(
    "--workers", type=click.IntRange(1, 3), metavar="N", default=1, show_default=True, help="Number of Connect workers."
)
@click.option(
    "--eos", "modes", multiple=True, type=click.Choice(_MODES), help="Mode of each worker in turn (default enabled)."
)
@click.option("--secure", is_flag=True, help="Use TLS, SCRAM-SHA-512 and an authorizer, with a user per role.")
@click.option("--metrics", is_flag=True, help="Run jmx_exporter's agent in each worker, for `eosctl metrics`.")
@_name
@click.pass_context
def up(
    ctx: click.Context,
    *,
    kafka_version: str | None,
    workers: int,
    modes: tuple[str, ...],
    secure: bool,
    metrics: bool,
    name: str,
) -> Report:
    """Start a broker and workers, and wait until they answer.

    Without --secure the brokers require no login: every user of this machine can read and write all topics and, through
    the config topic, run connectors as you. The workers require a password; the printed lines point eosctl to it, and
    `curl --netrc-file` takes the file login/rest.netrc of the sandbox's directory.

    With --secure all clients log in at a SASL_SSL listener, and have the rights that ACLs grant: the worker as
    User:worker, the clients of its connectors as User:producer, User:consumer and User:admin, each with the rights of
    `eosctl acls` for a group without connectors. `eosctl acls apply` gives a connector its rights. The path of a
    settings file per user (mode 0600) is printed, also for the roles of eosctl itself and for User:super, who may do
    everything. The listeners that the brokers use among themselves require a login, too.

    Example: eosctl sandbox up --workers 2 --eos disabled --eos disabled
    """
    from eosctl.sandbox.operations import up_sandbox

    if len(modes) > workers:
        raise UsageError(
            f"there are more modes ({len(modes)}) than workers ({workers})",
            hint="Raise --workers.",
        )
    each = [*modes, *[modes[-1] if modes else "enabled"] * (workers - len(modes))]
    session = ctx.ensure_object(Session)
    return up_sandbox(
        session.state_dir(), _checked(name), kafka_version=kafka_version, modes=each, secure=secure,
        metrics=metrics, environ=session.environ,
        on_event=session.messages(), start_timeout_s=session.flags.get("timeout"),
    )  # fmt: skip


@sandbox.command("status")
@_name
@click.pass_context
def status(ctx: click.Context, name: str) -> Report:
    """Show the processes of a sandbox and how to reach them; for a secured one, as each of its users.

    Example: eosctl sandbox status
    """
    from eosctl.sandbox.operations import sandbox_status

    return sandbox_status(ctx.ensure_object(Session).state_dir(), _checked(name))


@sandbox.command("logs")
@click.argument("node", required=False)
@click.option(
    "--lines",
    "-n",
    metavar="N",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help="Number of lines from the end.",
)
@_name
@click.pass_context
def logs(ctx: click.Context, node: str | None, lines: int, name: str) -> Report:
    """Print the end of the logs of one NODE, or of all nodes.

    Example: eosctl sandbox logs broker-1 -n 50
    """
    from eosctl.sandbox.operations import sandbox_logs

    return sandbox_logs(ctx.ensure_object(Session).state_dir(), _checked(name), node=node, lines=lines)


@sandbox.command("down")
@_name
@click.pass_context
def down(ctx: click.Context, name: str) -> Report:
    """Stop a sandbox, workers before brokers, and remove its files.

    Example: eosctl sandbox down
    """
    from eosctl.sandbox.operations import down_sandbox

    return down_sandbox(ctx.ensure_object(Session).state_dir(), _checked(name))


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"{name!r} can't name a sandbox", hint="Use letters, digits, dots, dashes and underscores.")
    return name


@click.command(cls=EosctlCommand)
@click.option(
    "--kafka-version", metavar="V", help="Kafka and Connect version (default: the newest with its own connectors)."
)
@click.option("--keep", is_flag=True, help="Leave the sandbox up and print how to reach it.")
@click.pass_context
def demo(ctx: click.Context, kafka_version: str | None, keep: bool) -> Report:
    """Walk through the main tasks on a fresh sandbox.

    Starts a real broker and three real Connect workers on loopback, and tells a story: connectors deliver;
    a naive switch of the offsets topic delivers everything twice; eosctl moves two connectors without that; a zombie is
    fenced; an upgrade is planned; and audit proves from the log who was exactly-once. Commands are real, and their
    answers are cut to what matters. The exit code is 0 only if every claim was true, and a scene that fails is named.

    Example: eosctl demo --keep
    """
    from eosctl.demo.run import demo_on_a_fresh_sandbox

    session = ctx.ensure_object(Session)
    session.flags.setdefault("timeout", 600.0)
    return demo_on_a_fresh_sandbox(session.app(), environ=session.environ, kafka_version=kafka_version, keep=keep)
