"""The root command: lazily loaded sub-commands, one renderer, one boundary for errors.

Nothing but click and the standard library is imported for `eosctl --help`; tests pin that.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, UsageError
from eosctl.foreign import printable

from .help import GlobalOption, WithGlobalOptions, shows_all
from .options import global_options
from .session import Session, asked_output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from eosctl.report import Report

# name -> (group of `eosctl --help`, module below eosctl.commands, one line of help); a test compares the lines with the
# commands' own
COMMANDS = {
    "doctor": ("Look", "doctor", "Run every check; the worst findings come first."),
    "explain": ("Look", "explain", "Explain a code, an exception, a stack trace or a log."),
    "metrics": ("Look", "metrics", "Show how large the transactions of source tasks are."),
    "txn": ("Look", "txn", "List, describe and abort transactions; find hanging ones."),
    "watch": ("Look", "monitor.watch:watch", "Watch the findings of doctor live, the worst first."),
    "workers": ("Look", "workers", "Show the workers of a Connect group and their modes."),
    "audit": ("Prove", "audit", "Prove from the log whether a connector was exactly-once."),
    "history": ("Prove", "history", "Show the audit log: what eosctl wrote."),
    "rehearse": ("Prove", "sandbox.rehearse:rehearse", "Try a connector in a sandbox: the upgrade, then faults."),
    "fence": ("Repair", "fence", "Fence producers by transactional id."),
    "rescue": ("Repair", "rescue", "Recover a connector that Connect can't fence."),
    "task-counts": ("Repair", "task_counts", "Show, check and write task-count records."),
    "acls": ("Change", "acls", "Show, check and add the ACLs that exactly-once Connect needs."),
    "connectors": ("Change", "connectors.group:connectors", "Check, create, change, move and stop connectors."),
    "offsets": ("Change", "offsets.group:offsets", "Show, compare, merge and migrate source offsets."),
    "upgrade": ("Change", "upgrade.group:upgrade", "Upgrade a group to exactly-once in two steps, or go back."),
    "demo": ("Run", "sandbox.group:demo", "Walk through the main tasks on a fresh sandbox."),
    "exporter": ("Run", "monitor.exporter:exporter", "Serve metrics about exactly-once for Prometheus."),
    "sandbox": ("Run", "sandbox.group:sandbox", "Run a real Kafka and real Connect workers on this machine."),
    "completion": ("Settings", "completion", "Print the completion script of a shell."),
    "profile": ("Settings", "profile", "Manage named sets of options (profiles) in a YAML file."),
    "schema": ("Settings", "explain:schema", "Print the JSON Schemas of `-o json`."),
}


class RootGroup(WithGlobalOptions, click.Group):
    """A group that loads subcommands by name, renders their reports, and turns errors into text and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all names, without loading anything."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load and return the subcommand."""
        if cmd_name not in COMMANDS:
            return None
        module_name, _colon, attribute = COMMANDS[cmd_name][1].partition(":")
        module = importlib.import_module(f"eosctl.commands.{module_name}")
        command = getattr(module, attribute or module_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a broken table is a defect of ours, not a user's
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands from the table, so that a Tab loads none of them, and the options."""
        from click.shell_completion import CompletionItem

        found = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name][2]) for name in found), *options]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what eosctl is: one sentence, so that help fits a screen, or all of it with --help-all."""
        if shows_all(ctx):
            super().format_help_text(ctx, formatter)
        else:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(self.get_short_help_str(limit=200))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options of help itself with --help-all."""
        self.format_commands(ctx, formatter)
        if shows_all(ctx):
            own = [each for each in self.get_params(ctx) if not isinstance(each, GlobalOption)]
            with formatter.section("Options"):
                formatter.write_dl([record for each in own if (record := each.get_help_record(ctx))])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group from the table, so that `--help` loads none of them."""
        longest = max(map(len, COMMANDS))
        for group in dict.fromkeys(group for group, _module, _text in COMMANDS.values()):
            listed = [(name, text) for name, (its_group, _module, text) in COMMANDS.items() if its_group == group]
            with formatter.section(group):
                formatter.write_dl([(name.ljust(longest), text) for name, text in listed])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the global options with --help-all; without it, how to go on."""
        if shows_all(ctx):
            super().format_epilog(ctx, formatter)
        else:
            formatter.write_paragraph()
            formatter.write_text("Details: eosctl COMMAND --help. Global options, exit codes: eosctl --help-all.")

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; every way out of it ends here, in a documented exit code."""
        argv = list(sys.argv[1:] if args is None else args)
        session: Session = extra.setdefault("obj", Session())
        try:
            _require_utf8(argv)
            code = super().main(argv, prog_name, complete_var, standalone_mode=False, **extra)
        except click.UsageError as exc:
            _show_usage(exc)
            code = _failure(UsageError(exc.format_message()), session, argv, with_problems=False)
        except EosctlError as exc:
            if isinstance(exc.__cause__, KeyboardInterrupt):
                click.echo(err=True)  # as click does: the cursor stands behind ^C
            code = _failure(exc, session, argv)
        except (click.Abort, KeyboardInterrupt):
            code = _failure(InterruptedByUserError("interrupted"), session, argv)
        except Exception as exc:
            _show_traceback(exc, session)
            hint = "Run again with -vv for the traceback and the exception's text, which may hold secrets."
            failure = EosctlError(f"unexpected {type(exc).__name__}", hint=hint)
            code = _failure(failure, session, argv)
        finally:
            session.close()
        if standalone_mode:
            sys.exit(code)
        return code


def _require_utf8(argv: Sequence[str]) -> None:
    """Raise UsageError for arguments that are not text, which would fail later, when sent, printed or recorded."""
    for number, word in enumerate(argv, start=1):
        if any("\udc80" <= character <= "\udcff" for character in word):
            shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise UsageError(
                f"argument {number} is not UTF-8: {shown}", hint="Nothing was done. Is the terminal set to UTF-8?"
            )


def _show_usage(exc: click.UsageError) -> None:
    """Show a usage error with escaped words, as they may be pasted names; keep the lines of choices and of help."""
    is_own = isinstance(exc, (click.MissingParameter, click.exceptions.NoArgsIsHelpError))
    (exc if is_own else click.UsageError(printable(exc.format_message()), exc.ctx)).show()


def _show_traceback(exc: Exception, session: Session) -> None:
    """Write the traceback to stderr with -vv, and to the log file always; the exception's text only with -vv."""
    log = session.log()
    with_text = session.verbosity > 1
    if log is None and not with_text:
        return
    lines = _traceback_lines(exc, with_text=with_text)
    if with_text:
        sys.stderr.writelines(lines)
    if log is not None:
        log.writelines(lines)


def _traceback_lines(exc: BaseException, *, with_text: bool) -> list[str]:
    """Return the traceback with a mark before each line, so that none looks like a line of eosctl's."""
    import traceback

    head, frames = "Traceback (most recent call last):", traceback.format_tb(exc.__traceback__)
    parts = traceback.format_exception(exc) if with_text else [head, *frames, type(exc).__name__]
    return [f"| {printable(line)}\n" for part in parts for line in part.rstrip("\n").split("\n")]


def _failure(error: EosctlError, session: Session, argv: Sequence[str], *, with_problems: bool = True) -> int:
    """Print `error` in the requested format, whether or not the command line could be parsed."""
    from eosctl.report import error_report

    return _emit(error_report(error), session, output=asked_output(argv, session.environ), with_problems=with_problems)


def _emit(report: Report, session: Session, *, output: str, with_problems: bool = True) -> int:
    from eosctl.output import render_problems, render_report

    session.quiet_progress()
    try:
        render_report(report, output=output, stream=sys.stdout, color=session.color(sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; what was done was done all the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if with_problems:
        render_problems(report, stream=sys.stderr, without=session.shown_problems)
    log = session.log()
    if log is not None:
        render_problems(report, stream=log)
        log.write(f"{report.kind}: exit code {int(report.exit_code)}")
    return int(report.exit_code)


def _print_tree(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    """Print every command with its options as JSON."""
    if value and not ctx.resilient_parsing:
        from .tree import command_tree

        groups = {name: group.lower() for name, (group, _module, _text) in COMMANDS.items()}
        ctx.exit(_emit(command_tree(ctx, groups), ctx.ensure_object(Session), output="json"))


_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=RootGroup, params=global_options(), context_settings=_HELP)
@click.option(
    "--help-json",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_tree,
    help="Print every command with its options, arguments, types and defaults as JSON, and exit.",
)
@click.version_option(package_name="eosctl", prog_name="eosctl")
def root() -> None:
    """Operate exactly-once Kafka Connect sources (KIP-618).

    A source task writes records and source offsets in one transaction, under a transactional id of its own. A
    restarted task takes the id over: the producer epoch rises, and the old task, now a zombie, is fenced out. eosctl
    reads these ids, offsets and task-count records from outside, and changes them safely: every write shows its
    plan, asks, keeps a backup and reads back the result. `eosctl explain` explains words and codes.

    Exit codes: 0 done, 1 failed, 2 usage, 3 findings, 4 unreachable, 5 not authorized, 6 refused, 7 partial,
    130 interrupted.
    """


@root.result_callback()
def _render(report: object, **_params: object) -> int:
    from eosctl.report import Report

    if not isinstance(report, Report):
        return int(ExitCode.OK)
    session = click.get_current_context().ensure_object(Session)
    return _emit(report, session, output=session.output)
