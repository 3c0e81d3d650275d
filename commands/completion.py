"""`eosctl completion`: click's own completion scripts, as data like everything else."""

from __future__ import annotations

from typing import get_args

import click
from click.shell_completion import get_completion_class

from eosctl.explain.rows import COMPLETION, CompletionData, Shell
from eosctl.report import Report

from .frame.options import EosctlCommand

SHELLS = get_args(Shell)


@click.command(cls=EosctlCommand)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: Shell) -> Report:
    """Print the completion script of a shell.

    The script asks eosctl itself for the candidates at each Tab, so it never goes stale. Needs no Kafka; bash 4.4 or
    newer. To load it into the running shell, or permanently:

    \b
    eval "$(eosctl completion bash)"
    mkdir -p ~/.local/share/bash-completion/completions
    eosctl completion bash > ~/.local/share/bash-completion/completions/eosctl
    mkdir -p ~/.zfunc; eosctl completion zsh > ~/.zfunc/_eosctl
    mkdir -p ~/.config/fish/completions
    eosctl completion fish > ~/.config/fish/completions/eosctl.fish

    zsh reads ~/.zfunc if ~/.zshrc has `fpath=(~/.zfunc $fpath)` before `compinit`.

    Example: eosctl completion bash
    """
    template = get_completion_class(shell)
    assert template is not None  # noqa: S101 - click has had all three shells since 8.0
    script = template(ctx.find_root().command, {}, "eosctl", "_EOSCTL_COMPLETE")
    # not `source()`: that of bash starts a bash to check its version
    text = script.source_template % script.source_vars()
    return Report(kind=COMPLETION, data=CompletionData(shell=shell, script=text))
