"""`eosctl connectors move`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from eosctl.core.allowances import Waiver
from eosctl.core.configs.records import Selection
from eosctl.errors import UsageError

from ..frame.confirm import run_plan
from ..frame.options import EosctlCommand, pass_app, pass_request, waivers, write_options

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.move.plan import MoveRequest
    from eosctl.report import Report


class MoveOptions(Struct, frozen=True):
    """The options of `connectors move`."""

    connector: str | None
    all_connectors: bool
    pattern: str | None
    to: str | None
    rename: str | None
    settings: tuple[str, ...]
    resume: bool
    back: bool
    delete: bool
    keep_going: bool
    overwrite_offsets: bool
    read_again: bool

    def selection(self) -> Selection:
        """Return the connectors to move; raise UsageError for none, or for several where one is needed."""
        if self.rename is not None and self.connector is None:
            raise UsageError("--rename is for one connector", hint="Give --connector, and move the others one by one.")
        return Selection((self.connector,) if self.connector else (), self.all_connectors, self.pattern)

    def request(self) -> MoveRequest:
        """Return the request; raise UsageError for options that contradict each other."""
        from eosctl.connectors.definition import refuse_unusable_name
        from eosctl.core.configs.given_settings import parse_settings
        from eosctl.move.journal import Direction
        from eosctl.move.plan import MoveRequest

        if self.rename is not None:
            refuse_unusable_name(self.rename)
        if self.back and self.delete:
            raise UsageError("--back and --delete contradict each other", hint="Give one of them.")
        direction = Direction.BACK if self.back else Direction.DELETE if self.delete else Direction.THERE
        if direction is not Direction.THERE and (self.settings or self.rename):
            raise UsageError(f"--{direction} takes neither --set nor --rename", hint="The journal has them.")
        settings = parse_settings(self.settings, name_option="--rename") if self.settings else None
        return MoveRequest(
            direction, self.to, self.rename, settings, self.resume, self.overwrite_offsets, self.read_again
        )


@click.command("move", cls=EosctlCommand)
@click.option("--connector", metavar="NAME", help="The source connector.")
@click.option("--all", "all_connectors", is_flag=True, help="Every source connector of the group, one after the other.")
@click.option("--match", "pattern", metavar="GLOB|re:REGEX", help="Connectors with a name that matches as a whole.")
@click.option("--to", metavar="PROFILE", help="The profile of the other Connect group.")
@click.option("--rename", metavar="NAME", help="The connector's name there [default: the same].")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change its config there (repeatable).")
@click.option("--resume", is_flag=True, help="Go on with what was begun and not finished.")
@click.option("--back", is_flag=True, help="Bring it back, with the offsets that it has there.")
@click.option("--delete", is_flag=True, help="Delete what is left of it here, once it has committed there.")
@click.option("--keep-going", is_flag=True, help="Of several, go on with the next one when one fails.")
@waivers(Waiver.OVERWRITE_OFFSETS, Waiver.READ_AGAIN)
@write_options
@pass_app
@pass_request(MoveOptions)
def move(app: App, options: MoveOptions, *, yes: bool, dry_run: bool) -> Report:
    """Move a source connector to another Connect group: it goes on there where it stopped here.

    The other group is that of a profile, on the same Kafka cluster or another one. The command stops the connector
    here, waits until no worker has a task of it, fences the tasks' transactional ids, waits for the last commit,
    creates it there STOPPED, gives it its offsets there (bytes as they are; with --rename under its new name), asks
    the worker there whether it finds each of them, starts it there, waits until it runs and commits, and audits both
    sides: here the last minute up to the stop, there all since the start. A connector that was STOPPED or PAUSED is
    left in that state there. Before it is started, the other side is proven to be STOPPED without a task; a side that
    can't be asked ends the run. So the command never has it run on both.

    Here it stays STOPPED, with its offsets. --delete deletes it here once it runs there and has committed. --back
    stops it there, brings it and its offsets back, starts it here, and deletes it there (a config that was changed
    there stays, STOPPED); if it was never started there, only what was created there is removed. Each step is in a
    journal on this machine: after a kill or a failed step, --resume (or the same command) goes on.

    Its config goes from worker to worker and into no file. References to config providers are carried as they are,
    and resolved by the workers there. --set changes a property; it takes no secret, but a reference to one. The
    worker there must be named by the profile (connect_url), and accept the config; the connector's own checks may
    connect to its source. Offsets that lie there already under its name are replaced if they are older; newer ones
    are refused without --overwrite-offsets. A config with which it would start over there is refused without
    --read-again. Sink connectors are refused, and left out of --all and --match.

    The exit code is 7 if the audit can't prove both sides, as with a source that commits nothing yet, and 3 if it
    finds records that are not exactly-once; a move between workers that are not enabled is at least once and is not
    audited. --timeout is per step. Needs workers of Kafka 3.5 or newer here, 3.7 or newer there, and a stable group
    on both sides.

    Example: eosctl connectors move -p blue --connector orders --to green --dry-run
    """
    from eosctl.move.apply import prepare_move

    plan = prepare_move(app, options.selection(), options.request(), keep_going=options.keep_going)
    return run_plan(plan, yes=yes, dry_run=dry_run)
