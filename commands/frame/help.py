"""The layout of `--help`: what is the command's own; with `--help-all` the global options, too."""

from __future__ import annotations

import click

_SHOW_ALL = "eosctl.help_all"  # of `Context.meta`, which a command shares with its sub-commands
_WHERE_THE_REST_IS = "Global options (-b, -g, -u, -w, -p, -o, --timeout ...) are accepted here too: see --help-all."


class GlobalOption(click.Option):
    """An option that every command takes; help has a section for them, and only with --help-all."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of help if --help-all was given."""
        return super().get_help_record(ctx) if shows_all(ctx) else None


class WithGlobalOptions(click.Command):
    """A command whose help has its own options first, and the global ones behind --help-all."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options; arguments, which click 8.5.1 lists among them, are in the usage."""
        found = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        own = [param for param in found if not isinstance(param, GlobalOption)]
        if records := [record for param in own if (record := param.get_help_record(ctx))]:
            with formatter.section("Options"):
                formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog, then the global options, or where they are."""
        super().format_epilog(ctx, formatter)
        write_global_options(self, ctx, formatter)


def write_global_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the global options of `command` with --help-all; without it, where they are."""
    if not shows_all(ctx):
        formatter.write_paragraph()
        formatter.write_text(_WHERE_THE_REST_IS)
        return
    found = [param for param in command.get_params(ctx) if isinstance(param, GlobalOption)]
    with formatter.section("Global options, before or after the command"):
        formatter.write_dl([record for param in found if (record := param.get_help_record(ctx))])


def shows_all(ctx: click.Context) -> bool:
    """Decide whether help was asked for with --help-all."""
    return bool(ctx.meta.get(_SHOW_ALL))


def help_all_option() -> click.Option:
    """Make the option --help-all of one command."""
    return click.Option(
        ["--help-all"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_show_all,
        help="Show help with the global options, and exit.",
    )


def _show_all(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOW_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
