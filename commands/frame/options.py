"""The global options, accepted before or after the sub-command, and the decorators that commands share."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from eosctl.errors import ExitCode, RefusedError

from .candidates import offer_names
from .help import GlobalOption, WithGlobalOptions, help_all_option
from .session import OUTPUTS, Session

if TYPE_CHECKING:
    from eosctl.core.allowances import Waiver

_F = TypeVar("_F", bound=Callable[..., Any])
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """`30s`, `500ms`, `5m`, `1h`, or plain seconds; the value is in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert a duration to seconds; fail the option with a usage error."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", str(value).strip())
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a duration; write 30s, 500ms, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS_S[match[2] or "s"]


def _collect(ctx: click.Context, param: click.Parameter, value: object) -> object:
    """Keep a global option in the session if it was given, wherever on the command line."""
    name = str(param.name)
    if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
        ctx.ensure_object(Session).flags[name] = value
    return value


# names -> click's settings of the option
_GLOBAL_OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    ("-b", "--bootstrap-server"): {
        "metavar": "HOST:PORT,...",
        "help": "Brokers of the Kafka cluster that has Connect's internal topics.",
    },
    ("--command-config",): {"metavar": "FILE", "help": "Client settings: Java client.properties or librdkafka names."},
    ("-u", "--connect-url"): {
        "metavar": "URL",
        "multiple": True,
        "help": "REST URL of a worker (repeatable; default: found from the group).",
    },
    ("--connect-map",): {
        "metavar": "ADVERTISED=REACHABLE",
        "multiple": True,
        "help": "Reach a worker at another address (repeatable; * in REACHABLE is what * in ADVERTISED matched).",
    },
    ("--connect-ca",): {"metavar": "FILE", "help": "PEM CA certificates for the workers' REST API."},
    ("--connect-certificate",): {"metavar": "FILE", "help": "PEM client certificate for the workers' REST API."},
    ("--connect-key",): {"metavar": "FILE", "help": "PEM key of the client certificate, if it is in another file."},
    ("--connect-username",): {"metavar": "NAME", "help": "User name for basic authentication at the workers."},
    ("--connect-password-file",): {"metavar": "FILE", "help": "Password of that user; also $EOSCTL_CONNECT_PASSWORD."},
    ("--connect-token-file",): {"metavar": "FILE", "help": "Bearer token for workers; also $EOSCTL_CONNECT_TOKEN."},
    ("--connect-trust-discovered",): {
        "is_flag": True,
        "help": "Also send credentials, connector configs and signatures to discovered workers.",
    },
    ("-g", "--group-id"): {"metavar": "NAME", "help": "Connect's group.id."},
    ("-w", "--worker-config"): {
        "metavar": "FILE",
        "multiple": True,
        "help": "The .properties file of a worker, or of a dedicated MirrorMaker (repeatable).",
    },
    ("--config-topic",): {"metavar": "TOPIC", "help": "config.storage.topic (default connect-configs)."},
    ("--offset-topic",): {
        "metavar": "TOPIC",
        "help": "offset.storage.topic, the global offsets topic (default connect-offsets).",
    },
    ("-p", "--profile"): {"metavar": "NAME", "help": "Use this profile of the config file."},
    ("--config",): {"metavar": "FILE", "help": "The config file with profiles."},
    ("-o", "--output"): {
        "type": click.Choice(OUTPUTS),
        "envvar": "EOSCTL_OUTPUT",
        "help": "Default text; wide has more columns, ndjson prints one row per line.",
    },
    ("--timeout",): {
        "type": Duration(),
        "metavar": "DURATION",
        "envvar": "EOSCTL_TIMEOUT",
        "help": "Overall deadline (default 60s).",
    },
    ("--audit-log",): {"metavar": "FILE", "help": "File that records every write (default: in the state directory)."},
    ("--log-file",): {"metavar": "FILE", "help": "Append what goes to stderr to this file, with timestamps."},
    ("--no-color",): {"is_flag": True, "help": "No colours; also NO_COLOR or TERM=dumb."},
    ("-v", "--verbose"): {"count": True, "help": "More detail on stderr; -vv shows tracebacks."},
}


def global_options() -> list[click.Option]:
    """Make fresh copies of the global options."""
    options: list[click.Option] = [
        GlobalOption(names, expose_value=False, callback=_collect, is_eager=True, **settings)
        for names, settings in _GLOBAL_OPTIONS.items()
    ]
    offer_names(options)
    return [*options, help_all_option()]


_EXAMPLES = re.compile(r"(?m)(?:^ *\x08\n)?(?:^ *Example: eosctl .*\n?)+")


def _example_block(examples: re.Match[str]) -> str:
    """Return examples as a paragraph that click does not fold: folded, at hyphens too, they could not be pasted."""
    lines = [line.partition("Example: ") for line in examples[0].splitlines() if "Example: " in line]
    indent = lines[0][0]
    commands = "".join(f"{indent}  {command}\n" for _indent, _label, command in lines)
    return f"{indent}\b\n{indent}Example:\n{commands}"


class EosctlCommand(WithGlobalOptions, click.Command):
    """A command that also takes the global options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = _EXAMPLES.sub(_example_block, self.help or "")
        offer_names(self.params)
        own = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
        self.params += [option for option in global_options() if own.isdisjoint(option.opts)]


class EosctlGroup(WithGlobalOptions, click.Group):
    """A command group whose commands take the global options."""

    command_class = EosctlCommand
    group_class = type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += global_options()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands with their first sentence in full, which click would cut."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=200)) for name, each in found if each is not None])


class LazyGroup(EosctlGroup):
    """A group that loads some subcommands from modules beside its own, only when they are needed.

    `elsewhere` maps such a subcommand to its module, with `:name` where Python reserves the subcommand's.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all names, without loading anything."""
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand; load it now if it is another module's."""
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        module_name, _colon, attribute = self.elsewhere[cmd_name].partition(":")
        package = type(self).__module__.rpartition(".")[0]
        command = getattr(importlib.import_module(f"{package}.{module_name}"), attribute or cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - a broken table is a defect of ours, not a user's
        return command


def pass_app(function: _F) -> _F:
    """Pass the App of this invocation to the command as its first argument."""

    @functools.wraps(function)
    def with_app(*args: object, **kwargs: object) -> object:
        session = click.get_current_context().ensure_object(Session)
        return function(session.app(), *args, **kwargs)

    return with_app  # type: ignore[return-value]  # functools.wraps keeps the shape click needs


def pass_request(kind: type[Any]) -> Callable[[_F], _F]:
    """Pass those options of the command that are fields of `kind` as one value of it, after the App."""
    names = kind.__match_args__  # as dataclasses and Structs have it

    def with_fields(function: _F) -> _F:
        @functools.wraps(function)
        def gathered(*args: object, **options: object) -> object:
            given = {name: options.pop(name) for name in names if name in options}
            return function(*args, kind(**given), **options)

        return gathered  # type: ignore[return-value]  # functools.wraps keeps the shape click needs

    return with_fields


def validation_option(function: _F) -> _F:
    """Add --no-validate to a command that reads: some connectors log in to databases when workers validate configs."""
    option = click.option(
        "--no-validate",
        "validate",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not validate connector configs; some connectors log in to their databases to validate.",
    )
    return option(function)


def report_option(function: _F) -> _F:
    """Add --report, which writes what the command returns as an HTML page; refuse a bad file before the work."""

    @functools.wraps(function)
    def with_report(*args: object, report: str | None, **kwargs: object) -> object:
        if report is None:
            return function(*args, **kwargs)
        from eosctl.deadline import Event
        from eosctl.output.page import report_page
        from eosctl.state.pages import require_writable_page, with_page

        context = click.get_current_context()
        session = context.ensure_object(Session)
        path = require_writable_page(report)
        done = function(*args, **kwargs)
        made_ms = session.stopwatch().clock.now_ms()
        paged = with_page(done, path, report_page(done, asked=_asked(context), made_ms=made_ms))
        if paged is done:
            session.messages()(Event(f"report: {path}"))
        return paged

    option = click.option(
        "--report",
        metavar="FILE.html",
        type=click.Path(dir_okay=False),
        help="Also write the result as an HTML page, as evidence.",
    )
    return option(with_report)  # type: ignore[return-value]  # functools.wraps keeps the shape click needs


def _asked(ctx: click.Context) -> str:
    """Return the command line without the global options, in one spelling."""
    from eosctl.foreign import shell_words

    words = ctx.command_path.split()
    for param in ctx.command.params:
        name = str(param.name)
        if name not in ctx.params or ctx.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            words += [] if isinstance(param, click.Argument) else [max(param.opts, key=len)]
            words += [] if isinstance(each, bool) else [str(each)]
    return shell_words(*words)


def waivers(*given: Waiver, **settings: Any) -> Callable[[_F], _F]:
    """Add the options that waive these checks; flags, unless click's `settings` say otherwise."""

    def with_options(function: _F) -> _F:
        for waiver in reversed(given):
            function = click.option(str(waiver), help=waiver.help, **(settings or {"is_flag": True}))(function)
        return function

    return with_options


def write_options(function: _F) -> _F:
    """Add `--yes` and `--dry-run` to a command that writes; record in the audit log what a safety check refuses."""

    @functools.wraps(function)
    def noted(*args: object, dry_run: bool, **kwargs: object) -> object:
        from eosctl.report import Problem

        from .confirm import note_refusal

        try:
            report = function(*args, dry_run=dry_run, **kwargs)
        except RefusedError as exc:
            if not dry_run:
                note_refusal(Problem.of(exc))
            raise
        errors = [each for each in report.problems if each.severity == "error"]
        if report.exit_code == ExitCode.REFUSED and errors and not dry_run:
            note_refusal(errors[0], report)
        return report

    wrapped = click.option("--dry-run", is_flag=True, help="Show the plan and stop.")(noted)
    return click.option("-y", "--yes", is_flag=True, help="Apply without asking.")(wrapped)  # type: ignore[return-value]
