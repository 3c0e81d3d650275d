"""`eosctl --help-json`: every command with its options and arguments, as rows, made from click's own declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import click
from msgspec.structs import replace

from eosctl.explain.rows import (
    COMMAND_TREE,
    CommandArgument,
    CommandOption,
    CommandRow,
    CommandTree,
    CommandTreeSummary,
)
from eosctl.report import Report, plain

from .help import GlobalOption


def command_tree(ctx: click.Context, groups: Mapping[str, str]) -> Report:
    """Return a report with a row per command below the root that `ctx` runs; load them all.

    `groups` has the group of `eosctl --help` of each command of the root.
    """
    root = ctx.command
    _root, *rows = _rows_below(root, ctx, ())
    rows = [replace(row, purpose=groups[row.command.split()[0]]) for row in rows]
    return Report(
        kind=COMMAND_TREE,
        rows=rows,
        summary=CommandTreeSummary(commands=len(rows)),
        data=CommandTree(global_options=[_option(each, ctx) for each in root.params if isinstance(each, GlobalOption)]),
    )


def _rows_below(command: click.Command, ctx: click.Context, path: tuple[str, ...]) -> Iterator[CommandRow]:
    names = command.list_commands(ctx) if isinstance(command, click.Group) else []
    own = [param for param in command.get_params(ctx) if not isinstance(param, GlobalOption)]
    yield CommandRow(
        command=" ".join(path),
        purpose="",
        help=command.get_short_help_str(limit=200),
        commands=list(names),
        arguments=[_argument(each) for each in own if isinstance(each, click.Argument)],
        options=[_option(each, ctx) for each in own if isinstance(each, click.Option)],
    )
    for name in names:
        assert isinstance(command, click.Group)  # noqa: S101 - only a group has names
        found = command.get_command(ctx, name)
        assert found is not None  # noqa: S101 - the group has just listed it
        yield from _rows_below(found, click.Context(found, parent=ctx, info_name=name), (*path, name))


def _argument(argument: click.Argument) -> CommandArgument:
    return CommandArgument(
        name=(argument.metavar or str(argument.name).upper()).strip("[]."),
        type=_type(argument),
        choices=_choices(argument),
        required=argument.required,
        repeatable=argument.nargs != 1,
    )


def _option(option: click.Option, ctx: click.Context) -> CommandOption:
    return CommandOption(
        names=[*option.opts, *option.secondary_opts],
        type=_type(option),
        choices=_choices(option),
        metavar=None if option.is_flag or option.count else option.make_metavar(ctx),
        default=_default(option),
        required=option.required,
        repeatable=option.multiple or option.count,
        env=[option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ()),
        help=option.help or "",
    )


def _type(param: click.Parameter) -> str:
    """Return the name of the values' type: `flag`, `count`, or click's, such as `text`, `integer` and `choice`."""
    if isinstance(param, click.Option) and (param.is_flag or param.count):
        return "count" if param.count else "flag"
    return param.type.name.removesuffix(" range")


def _choices(param: click.Parameter) -> list[str] | None:
    if not isinstance(param.type, click.Choice):
        return None
    return [str(each.value if isinstance(each, Enum) else each) for each in param.type.choices]


def _default(option: click.Option) -> object:
    """Return the default as JSON has it; null where there is none, or where it is found when the command runs."""
    default = option.to_info_dict()["default"]
    if isinstance(default, Enum):
        default = default.value
    if callable(default) or not isinstance(default, str | int | float | bool | list | tuple):
        return None
    return plain(list(default) if isinstance(default, tuple) else default)
