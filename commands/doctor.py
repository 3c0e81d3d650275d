"""`eosctl doctor`: parses, calls one operation, returns its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .frame.options import EosctlCommand, pass_app, report_option, validation_option

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.checks.ignored import IgnoredFinding
    from eosctl.report import Report


@click.command("doctor", cls=EosctlCommand)
@click.option("--strict", is_flag=True, help="Exit 3 on warnings, too.")
@click.option(
    "--expect", "expected", type=click.Choice(["enabled", "preparing", "disabled"]),
    help="Report a worker in another mode as an error (default: expect.mode of the profile).",
)  # fmt: skip
@click.option(
    "--ignore", "ignored", metavar="CODE[:SUBJECT]", multiple=True,
    help="Only count these findings, for all subjects or for one (repeatable; added to `ignore` of the profile).",
)  # fmt: skip
@click.option(
    "--with", "profiles", multiple=True, metavar="PROFILE",
    help="Report connectors that run in this profile's group, too (repeatable).",
)  # fmt: skip
@click.option(
    "--for", "product", type=click.Choice(["streams", "flink"]),
    help="Check transactional applications of Kafka Streams or Flink; no Connect group is needed.",
)  # fmt: skip
@click.option(
    "--application", "applications", multiple=True, metavar="ID",
    help="With --for: only this application.id or transactionalIdPrefix (repeatable).",
)  # fmt: skip
@click.option(
    "--principal", "principals", multiple=True, metavar="User:NAME",
    help="With --for and --application: check this principal's rights on ids, groups and internal topics.",
)  # fmt: skip
@validation_option
@report_option
@pass_app
def doctor(
    app: App,
    *,
    strict: bool,
    validate: bool,
    expected: str | None,
    ignored: tuple[str, ...],
    profiles: tuple[str, ...],
    product: str | None,
    applications: tuple[str, ...],
    principals: tuple[str, ...],
) -> Report:
    """Run every check; the worst findings come first.

    The first line summarises the group: how many workers are enabled, how many source tasks are not exactly-once.
    If task-count records show that workers were enabled and none is now, that is an error; --expect sets the mode.

    Checks the workers and their modes, former members that the status topic names (each is asked whether it runs,
    without credentials), classes that some workers lack or have in another version, plugins that do not fit the
    workers' Kafka (if the plugin.path of a file given with -w is on this machine), the gates of the upgrade, hanging
    transactions, causes of FAILED tasks (and whether eosctl fenced them from this machine), task-count records, source
    connectors and their tasks (also whether a task, or its worker, can't commit or has committed nothing for five
    minutes), connectors that are not running or have no tasks, offsets topics and missing offsets, brokers that are
    down or whose disks are nearly full, replicas that are not in sync, replication and rights. The worst comes first,
    each with its fix; offsets that tasks do not see, or that went back, come before any fix that restarts something. A
    check that can't run has a row, too (not_checked, with the reason); rights are checked if the workers' files (-w)
    name the principals.

    Nothing is changed, but source connectors validate their configs, and some log in to their databases to do so
    (--no-validate skips this). Use --ignore for findings that you accept, such as few_replicas:__transaction_state on a
    single broker: they are counted, listed by -o wide and -o json, and do not affect the exit code. Consequences of a
    broker or a worker that does not answer are listed below it, an unreachable Kafka is one row, and findings of the
    same kind are folded into one. The exit code is 3 if a finding is an error (with --strict, also a warning), else 7
    if something could not be seen (data.unseen names it); 1 if nothing is known of the group. Needs Kafka Connect 3.3
    and brokers of 3.0 or newer.

    --with PROFILE also asks the workers of that profile's group, on the same or another Kafka cluster, for source
    connectors that read the same source as one of this group: by name, config, and source partitions. It is an error
    if both run with the same config, whose hosts (fully qualified names, public addresses) mean the same everywhere; a
    warning if that is not certain; and information if one of them rests, as after a move. Needs the group and brokers
    of both.

    With --for streams or flink it checks such applications: hanging transactions, timeouts, shared prefixes, ids that
    expire, __transaction_state, known bugs of the brokers, transaction.version (KIP-890), rights.

    \b
    Example: eosctl doctor -b kafka:9092 -g connect-cluster -w worker.properties -o json
    Example: eosctl doctor -b kafka:9092 --for streams --application billing
    """
    from eosctl.checks.applications import examine_applications, to_check

    if wanted_applications := to_check(product, applications, principals, profiles=profiles):
        return examine_applications(app, wanted_applications, strict=strict, ignore=_to_ignore(app, ignored))
    from eosctl.checks.plan import examine
    from eosctl.core.workers.modes import Mode

    wanted = expected or app.target.expect.get("mode")
    mode = Mode(wanted) if wanted else None
    return examine(
        app, strict=strict, validate=validate, expected=mode, ignore=_to_ignore(app, ignored), profiles=profiles
    )


def _to_ignore(app: App, given: Sequence[str]) -> Sequence[IgnoredFinding]:
    if not given and not app.target.ignore:
        return ()
    from eosctl.checks.ignored import to_ignore
    from eosctl.explain.entries import finding_codes

    return to_ignore(app.target, given, finding_codes())
