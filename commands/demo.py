"""`eosctl demo`: the main job on a fresh sandbox, narrated."""

from __future__ import annotations

import click

from eosctl.report import Report

from .options import EosctlCommand
from .session import Session


@click.command(cls=EosctlCommand)
@click.option("--kafka-version", metavar="V", help="Kafka and Connect version (default: the newest supported).")
@click.option("--keep", is_flag=True, help="Leave the sandbox up and print how to reach it.")
@click.pass_context
def demo(ctx: click.Context, kafka_version: str | None, keep: bool) -> Report:
    """Walk through the main job on a fresh sandbox.

    Starts a real broker and three real Connect workers on loopback; shows what a naive switch of the offsets topic
    does, moves two connectors without losing or repeating a line, fences a zombie, and plans an upgrade. Exits 0 only
    if every count was right; the rows of the report say what was proved.

    Example: eosctl demo --keep
    """
    from eosctl.ops.demo import demo_on_a_fresh_sandbox

    session = ctx.ensure_object(Session)
    session.flags.setdefault("timeout", 600.0)
    return demo_on_a_fresh_sandbox(session.app(), environ=session.environ, kafka_version=kafka_version, keep=keep)
