"""The pages of the reference that are made from the code: commands, global options, profiles and documents.

Each is a pair of the page's path in the site and its text in Markdown.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from eosctl.explain.kinds import declared_kinds, schema_of
from eosctl.output.json_schema import schema_of_type
from eosctl.output.rows import words_of_columns
from eosctl.profiles.file_format import Connect, ExpectedTarget, Profile

_ROOT_MODULE = importlib.import_module("eosctl.commands.frame.root")
_ROOT: click.Group = _ROOT_MODULE.root
_GROUPS: Mapping[str, tuple[str, str, str]] = _ROOT_MODULE.COMMANDS
_GlobalOption: type[click.Option] = importlib.import_module("eosctl.commands.frame.help").GlobalOption
_Pages = Iterator[tuple[str, str]]
_COMMANDS = "reference/commands"
_ANY_TEXT = {"string", "integer", "number", "boolean"}
"""The types of a value that is text in the config file, where YAML reads `9092` and `true` as no text."""


def reference_pages() -> _Pages:
    """Make all of them."""
    yield from _pages_of_commands()
    yield "reference/options.md", _global_options()
    yield "reference/profiles.md", _profiles()
    yield "reference/kinds.md", _kinds()


def _pages_of_commands() -> _Pages:
    context = click.Context(_ROOT, info_name="eosctl")
    for name, command in _below(_ROOT, context):
        yield f"{_COMMANDS}/{name}.md", "\n".join(_command(command, context, name, level=1))
    lines = ["# Commands\n", *_help(_ROOT)]
    for group in dict.fromkeys(group for group, _module, _text in _GROUPS.values()):
        lines += [f"## {group}\n", "| command | what it does |", "| --- | --- |"]
        lines += [
            f"| [`eosctl {name}`]({name}.md) | {_cell(text)} |"
            for name, (its_group, _module, text) in _GROUPS.items()
            if its_group == group
        ]
        lines.append("")
    yield f"{_COMMANDS}/index.md", "\n".join(lines)


def _below(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command


def _command(command: click.Command, above: click.Context, name: str, *, level: int) -> Iterator[str]:
    """Make the section of a command, and below it those of its commands."""
    context = click.Context(command, info_name=name, parent=above)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```\n{usage}\n```\n"
    yield from _help(command)
    for param in command.params:
        if isinstance(param, click.Option) and not isinstance(param, _GlobalOption):
            yield from _option(param, context)
    if isinstance(command, click.Group):
        for inner, found in _below(command, context):
            yield from _command(found, context, inner, level=level + 1)


def _help(command: click.Command) -> Iterator[str]:
    r"""Make Markdown of a help text: paragraphs as they are, those that `\b` keeps unwrapped as code."""
    for paragraph in re.split(r"\n{2,}", inspect.cleandoc(command.help or "")):
        if not paragraph.startswith("\b"):
            yield _escaped(paragraph) + "\n"
            continue
        title, *lines = paragraph.removeprefix("\b").strip("\n").splitlines()
        if title.endswith(":") and lines and all(line.startswith(" ") for line in lines):
            yield f"{_escaped(title)}\n"
        else:
            lines = [title, *lines]
        yield "```\n" + inspect.cleandoc("\n" + "\n".join(lines)) + "\n```\n"


def _option(option: click.Option, context: click.Context) -> Iterator[str]:
    record = click.Option.get_help_record(option, context)  # that of a global option needs --help-all
    if record is not None:
        names, text = record
        yield f"`{names}`\n:   {_escaped(text) or '(no text)'}\n"


def _global_options() -> str:
    lines = [
        "# Global options\n",
        "Each command takes them, before and after its name. An option goes before the environment, that before the",
        "profile, then comes the worker's file (`-w`); `eosctl profile show --origin` shows where each value comes",
        "from.\n",
    ]
    context = click.Context(_ROOT, info_name="eosctl")
    for param in _ROOT.params:
        if isinstance(param, _GlobalOption):
            lines += _option(param, context)
    return "\n".join(lines)


def _profiles() -> str:
    """Make the page of the config file: what `eosctl profile --help` says, and every member, as its schema has it."""
    profile = _ROOT.get_command(click.Context(_ROOT), "profile")
    lines = ["# Settings of a profile\n", *_help(profile)] if profile is not None else []
    lines.append("`eosctl schema config-file` prints the JSON Schema of the file, for editors.\n")
    for title, members in (("A profile", Profile), ("connect", Connect), ("expect", ExpectedTarget)):
        lines += [f"## {title}\n", inspect.cleandoc(members.__doc__ or "") + "\n", *_table(schema_of_type(members)), ""]
    return "\n".join(lines)


def _kinds() -> str:
    lines = [
        "# Documents\n",
        "What `-o json` prints has a `kind`. `eosctl schema KIND` prints the JSON Schema of one. Members may be",
        "added to a kind, and are never renamed or removed.\n",
    ]
    for name, kind in declared_kinds().items():
        lines += [f"## {name}\n", _escaped(kind.what) + "\n"]
        data = _properties(schema_of(name)).get("data", {})
        for where, members in _tables(data):
            if members:
                lines += [f"`{where}`:\n", *_table({"properties": members}), ""]
        columns = list(words_of_columns(kind))
        if columns:
            lines.append("Columns: " + ", ".join(f"`{header}`" for header, _text in columns) + ".\n")
    return "\n".join(lines)


def _table(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table with the members of an object."""
    yield from ("| member | type | meaning |", "| --- | --- | --- |")
    for member, each in _properties(schema).items():
        yield f"| `{member}` | {_type(each)} | {_cell(each.get('description', ''))} |"


def _tables(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, each in _properties(data).items():
        if name == "rows":
            yield "data.rows[]", _properties(each.get("items", {}))
        elif _properties(each):
            yield f"data.{name}", _properties(each)


def _properties(schema: Any) -> dict[str, Any]:
    found: dict[str, Any] = schema.get("properties", {})
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """Return the types of a member in words; a choice of words is listed."""
    if "anyOf" in schema:
        types = list(dict.fromkeys(_type(each) for each in schema["anyOf"]))
        if set(types) >= _ANY_TEXT:
            types = ["text", *(each for each in types if each not in _ANY_TEXT)]
        return " or ".join(types)
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|").replace("\n", " ")


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, but for code between backticks."""
    parts = text.split("`")
    plain = [re.sub(r"([<*_\[\]])", r"\\\1", part) if not index % 2 else part for index, part in enumerate(parts)]
    return "`".join(plain)
