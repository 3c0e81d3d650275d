"""`eosctl fence`: parses, plans, asks, applies, returns the report."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eosctl.core.allowances import Waiver
from eosctl.errors import InputFileError

from .frame.confirm import run_plan
from .frame.options import EosctlCommand, pass_app, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.core.ids import TransactionalId
    from eosctl.report import Report

_VIA_HELP = "native: one InitProducerId per id; connect: let the leader fence a STOPPED --connector, about one id per \
second, and write the task-count record (Kafka 3.5); producer: librdkafka, for authentication that native does not \
support."


@click.command("fence", cls=EosctlCommand)
@click.argument("transactional_ids", metavar="[TXN_ID]...", nargs=-1)
@click.option("--from-file", metavar="FILE", help="Read ids from a file, one per line; - is stdin.")
@click.option("--prefix", metavar="PREFIX", help="Every known id that starts with PREFIX.")
@click.option("--match", metavar="REGEX", help="Every known id that matches REGEX as a whole (Python's re).")
@click.option("--connector", metavar="NAME", help="The ids that Connect would fence: tasks 0 to N-1 (see --tasks).")
@click.option("--tasks", type=click.IntRange(min=0), metavar="N", help="Number of tasks; overrides the recorded count.")
@waivers(Waiver.LIVE, Waiver.UNKNOWN_LIVENESS, Waiver.DISCARD_PREPARED, Waiver.ALLOW_LEADER, Waiver.CREATE_UNKNOWN)
@click.option("--via", type=click.Choice(["native", "connect", "producer"]), default="native", help=_VIA_HELP)
@write_options
@pass_app
def fence(
    app: App,
    transactional_ids: tuple[TransactionalId, ...],
    from_file: str | None,
    prefix: str | None,
    match: str | None,
    connector: str | None,
    tasks: int | None,
    live: bool,
    unknown_liveness: bool,
    discard_prepared: bool,
    allow_leader: bool,
    create_unknown: bool,
    via: str,
    yes: bool,
    dry_run: bool,
) -> Report:
    """Fence producers by transactional id.

    A zombie is an old task that still runs somewhere and still writes. Fencing its transactional id raises the
    producer epoch at the coordinator: the zombie's open transaction is aborted, and its next write or commit fails.
    Connect does the same before it starts the tasks of an exactly-once source: one InitProducerId per id.

    Ids that no coordinator knows are skipped. Each of these is refused unless its flag is given: ids of running tasks
    of any Connect group (--live; a fenced task goes FAILED and Connect does not restart it); ids of tasks that may be
    running, because their group or its workers do not answer (--unknown-liveness); ids of a Connect leader
    (--allow-leader); open transactions under ids like those of Flink's sink, PREFIX-SUBTASK-NUMBER, which may hold
    records that a checkpoint has prepared (--discard-prepared).

    If the --connector writes to another Kafka cluster (producer.override.bootstrap.servers), its ids are fenced there,
    with the client settings of its config. If those refer to secrets that only a worker can resolve, nothing is fenced.

    The coordinators of the groups report which tasks may run, and the workers which of those have failed. With --live
    no worker is asked; with --unknown-liveness workers get five seconds; with both, neither is asked. The exit code
    is 1 if there is nothing to fence and the named group is unknown, too.

    --via connect sends a signature that the group's members trust. The leader gets it if it was named (-u, a profile,
    --connect-map), or with --connect-trust-discovered; if another worker leads, the error shows the URL to add.

    Needs Kafka 3.0 or newer. ACLs: DESCRIBE and WRITE on each TransactionalId; DESCRIBE on the Connect groups.

    Example: eosctl fence -b kafka:9092 -g connect-cluster --connector orders-source --dry-run
    """
    from eosctl.fence.gather import FenceRequest
    from eosctl.fence.plan import prepare_fence

    given = (*transactional_ids, *_ids_of_file(from_file))
    request = FenceRequest(
        given,
        prefix=prefix,
        pattern=match,
        connector=connector,
        tasks=tasks,
        live=live,
        unknown_liveness=unknown_liveness,
        discard_prepared=discard_prepared,
        allow_leader=allow_leader,
        create_unknown=create_unknown,
        via=via,
    )
    return run_plan(prepare_fence(app, request), yes=yes, dry_run=dry_run)


def _ids_of_file(name: str | None) -> list[TransactionalId]:
    """Read the ids of a file, or of stdin for `-`; skip the byte order mark of Windows. Raise InputFileError."""
    from eosctl.fence.rules import parse_id_lines

    if name is None:
        return []
    if name == "-":
        return parse_id_lines(sys.stdin.buffer.read().removeprefix(BOM_UTF8), source="stdin")
    try:
        data = Path(name).read_bytes()
    except OSError as exc:
        raise InputFileError(
            f"cannot read {name}: {exc.strerror or exc}", hint="Check the path and its rights."
        ) from exc
    return parse_id_lines(data.removeprefix(BOM_UTF8), source=name)
