"""`eosctl offsets export`: options in, lines or a Report out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from eosctl.errors import UsageError
from eosctl.foreign import json_text
from eosctl.report import Report

from ..frame.options import EosctlCommand, pass_app
from ..frame.session import Session

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.offsets.files.rows import Format


@click.command("export", cls=EosctlCommand)
@click.option("--store", metavar="STORE", help="global, dedicated (with --connector), TOPIC or TOPIC@PROFILE.")
@click.option("--backup", metavar="FILE", help="A .parquet backup, eosctl's format for many keys, instead of a store.")
@click.option(
    "--connector", "connectors", multiple=True, metavar="NAME", help="Only offsets of this connector (repeatable)."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["ndjson", "rest", "strimzi"]),
    default="ndjson",
    show_default=True,
    help="ndjson: a record file; rest: the KIP-875 body of one connector; strimzi: the same in a ConfigMap.",
)
@click.option(
    "--all-records", is_flag=True, help="Export the whole committed log, not only the newest record of each key."
)
@click.option("--with-secrets", is_flag=True, help="For the config topic: also export passwords and the session key.")
@click.argument("file", default="-")
@pass_app
def export_command(
    app: App,
    *,
    file: str,
    store: str | None,
    backup: str | None,
    connectors: tuple[str, ...],
    form: Format,
    all_records: bool,
    with_secrets: bool,
) -> Report | None:
    """Export a store as NDJSON (lossless), or as a body for PATCH /connectors/NAME/offsets.

    NDJSON holds the newest committed record of each key and partition, including tombstones and invalid keys. The
    KIP-875 body (--format rest) holds one connector's live offsets, but not the bytes of their keys; what it can't
    hold is reported. --format strimzi is the same body in a ConfigMap, from which Strimzi's operator alters offsets:
    give it the name in the KafkaConnector's alterOffsets, and annotate that with strimzi.io/connector-offsets=alter.
    FILE is replaced after everything was read; without FILE, or with -, the lines go to stdout, and -o json is
    refused. Needs Kafka 0.11 or newer.

    With --backup, the .parquet backup of `offsets migrate`, or of another write of more than 100,000 keys, is written
    as NDJSON, for grep and jq: a line per key, with what was there and what was `written` over it. No broker is asked.
    `restore`, `verify` and `import` take either form.

    \b
    Example:
      eosctl offsets export -b kafka:9092 --store global offsets.ndjson
      eosctl offsets export -b kafka:9092 --store global --connector orders-source --format rest body.json
      eosctl offsets export --backup backup.parquet backup.ndjson
    """
    if file == "-":
        _refuse_documents(click.get_current_context().ensure_object(Session).output)
    if store is not None and backup is None:
        from eosctl.offsets.files.export import ExportRequest, export_blocks, export_offsets

        request = ExportRequest(store, connectors, form, all_records=all_records, with_secrets=with_secrets)
        return _shown(export_blocks(app, request) if file == "-" else export_offsets(app, request, path=file))
    if backup is None or store is not None:
        raise UsageError("what is to be exported?", hint="Give --store STORE, or --backup FILE.")
    if form != "ndjson" or all_records or with_secrets:
        hint = "Leave out --format, --all-records and --with-secrets."
        raise UsageError("a backup is exported as the lines that it stands for", hint=hint)
    from eosctl.offsets.files.offsets_file import unpack_backup, unpacked_blocks

    if file == "-":
        return _shown(unpacked_blocks(backup, connectors=connectors))
    return unpack_backup(app, backup, connectors=connectors, path=file)


def _shown(done: Report | Iterable[bytes]) -> Report | None:
    """Print records that go to stdout, in place of a report."""
    if isinstance(done, Report):
        return done
    for block in done:
        click.echo(json_text(block.decode()), nl=False)  # it may be a terminal
    return None


def _refuse_documents(output: str) -> None:
    """Raise UsageError if both records and a report would go to stdout."""
    if output in ("json", "yaml"):
        raise UsageError(
            f"the records go to stdout, so a report can't (-o {output})",
            hint="Name a FILE for the records, or leave -o out.",
        )
