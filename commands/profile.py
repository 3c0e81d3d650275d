"""`eosctl profile`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .frame.options import EosctlGroup
from .frame.session import Session, read_file

if TYPE_CHECKING:
    from eosctl.report import Report


@click.group("profile", cls=EosctlGroup)
def profile() -> None:
    """Manage named sets of options (profiles) in a YAML file.

    A profile says where a cluster and its Connect group are, and which credentials to use. -p NAME selects one; the
    default is the one of `profile use`. Options and EOSCTL_* variables override the profile; the profile overrides
    worker configs (-w). The file is --config, $EOSCTL_CONFIG, or eosctl/config.yaml below $XDG_CONFIG_HOME (~/.config).

    The file contains no secrets: in place of PASSWORD it has PASSWORD_env (the name of a variable), PASSWORD_file (a
    file with mode 0600) or PASSWORD_command (a command that prints it; then only you may own or write the file).

    expect.kafka_cluster_id and expect.group_id are compared with every plan: a write to any other cluster or group is
    refused. expect.mode is the mode that `eosctl doctor` expects of each worker: enabled, preparing or disabled. ignore
    lists the findings that doctor only counts, as its --ignore does.

    client.sasl.oauthbearer.token_command prints a bearer token, and runs again before that token expires: see
    `eosctl explain token_command`, which has an example for AWS_MSK_IAM.
    """


@profile.command("list")
@click.pass_context
def list_command(ctx: click.Context) -> Report:
    """List the profiles.

    Example: eosctl profile list
    """
    from eosctl.profiles.operations import list_profiles

    return list_profiles(ctx.ensure_object(Session).config_file())


@profile.command("show")
@click.argument("name", required=False)
@click.option("--origin", is_flag=True, help="Show where each value comes from.")
@click.pass_context
def show_command(ctx: click.Context, name: str | None, origin: bool) -> Report:
    """Show every value that a command would use.

    Options, environment, profile, worker configs and defaults are combined as in every command; --origin shows which
    of them each value comes from. Secrets are shown as ***, and no command runs and no file is read to get them.

    Example: eosctl profile show prod --origin
    """
    from eosctl.profiles.operations import show_target

    return show_target(ctx.ensure_object(Session).shown_target(name), with_origin=origin)


@profile.command("set")
@click.argument("name")
@click.argument("changes", metavar="KEY=VALUE...", nargs=-1, required=True)
@click.pass_context
def set_command(ctx: click.Context, name: str, changes: tuple[str, ...]) -> Report:
    """Change or create a profile; KEY= removes a key.

    Keys: bootstrap_server, command_config, connect_url, connect_map, group_id, worker_config, config_topic,
    offset_topic, status_topic, audit_log; client.PROPERTY (any name of a client.properties file); connect.ca,
    certificate, key, username, trust_discovered; expect.kafka_cluster_id, expect.group_id, expect.mode; ignore (of
    `eosctl doctor`; commas between several). Secrets as client.sasl.password_env=NAME, connect.password_file=FILE,
    connect.token_command=COMMAND. Comments in the file stay where they are.

    Example: eosctl profile set prod bootstrap_server=kafka:9092 group_id=connect expect.group_id=connect
    """
    from eosctl.profiles.operations import set_values

    with ctx.ensure_object(Session).edited_config_file() as file:
        return set_values(file, name, changes)


@profile.command("use")
@click.argument("name")
@click.pass_context
def use_command(ctx: click.Context, name: str) -> Report:
    """Make this profile the default.

    Example: eosctl profile use prod
    """
    from eosctl.profiles.operations import use_profile

    with ctx.ensure_object(Session).edited_config_file() as file:
        return use_profile(file, name)


@profile.command("import")
@click.argument("name")
@click.argument("file")
@click.pass_context
def import_command(ctx: click.Context, name: str, file: str) -> Report:
    """Create a profile from a worker.properties or a client.properties file.

    Addresses, group id and topics are copied; security settings are not: the profile refers to the file, so passwords
    stay there. For a dedicated MirrorMaker's file, -g names the group of the flow.

    Example: eosctl profile import prod /etc/kafka/connect-distributed.properties
    """
    from eosctl.core.java.properties import split_list
    from eosctl.profiles.operations import import_settings

    session = ctx.ensure_object(Session)
    text = read_file(file).decode("iso-8859-1")
    servers = split_list(session.flags.get("bootstrap_server", ""))
    with session.edited_config_file() as config:
        return import_settings(config, name, file, text, group_id=session.flags.get("group_id"), servers=servers)


@profile.command("check")
@click.argument("name", required=False)
@click.pass_context
def check_command(ctx: click.Context, name: str | None) -> Report:
    """Connect to everything that a profile names, and compare ids.

    The exit code is 3 if a cluster, group or worker is not the one that the profile expects. Writes nothing. Needs
    DESCRIBE on the Connect group; Kafka 2.4 or newer.

    Example: eosctl profile check prod
    """
    from eosctl.profiles.operations import check_target

    session = ctx.ensure_object(Session)
    if name is not None:
        session.flags["profile"] = name
    return check_target(session.app())
