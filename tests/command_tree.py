"""The commands that there are, so that tests about all of them miss none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

import click


def leaves() -> dict[str, click.Command]:
    """Every command that is no group, by its words behind `eosctl`."""
    return dict(_below(importlib.import_module("eosctl.commands.frame.root").root, ()))


def writing_leaves() -> set[str]:
    """The leaves that write to a cluster: those that ask before, unless --yes is given."""
    return {leaf for leaf, command in leaves().items() if any("--yes" in option.opts for option in command.params)}


def leaf_of(words: Sequence[str]) -> str:
    """The leaf that a command line begins with."""
    return next(leaf for leaf in leaves() if list(words[: len(leaf.split())]) == leaf.split())


def _below(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _below(found, (*path, name))
