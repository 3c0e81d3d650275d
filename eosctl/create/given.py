"""The offsets that a connector is given: of a file, or of another connector, here or on the cluster of a profile.

They are columns under the connector's own name, whatever name they had: the rest of each key keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.names import FILE_PREFIX, is_file
from eosctl.core.offsets.records import json_text
from eosctl.core.offsets.views import Flag, OffsetView, offset_views
from eosctl.core.wording import counted
from eosctl.create import codes
from eosctl.engine.files import spilled_if_several
from eosctl.engine.incoming import belonging, incoming_table, owners_in, under_name
from eosctl.errors import InputFileError, NotFoundError, RefusedError
from eosctl.foreign import shell_word
from eosctl.offsets.files.importing import read_offsets_file
from eosctl.offsets.files.offsets_file import BODY, OffsetsFile
from eosctl.offsets.guard import running_connectors, source_problem
from eosctl.offsets.listing import refuse_unknown
from eosctl.offsets.stores.gather import gather_stores
from eosctl.offsets.stores.on_disk import spool_of, writing_to
from eosctl.offsets.writes import refuse_hidden
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

STDIN = "-"
_ENDINGS = (".json", ".yaml", ".yml")
_NEED = "Offsets of a large file need up to twice its size there."
_MOST_NAMED = 5


class GivenOffsets(Struct, frozen=True):
    """Offsets under the connector's name; `origin` is where they come from, in words; `profile` that of its cluster.

    `connector` is the one that had them, None for a file. `running` describes it while it runs: its offsets move on.
    """

    file: OffsetsFile
    origin: str
    connector: str | None = None
    profile: str | None = None
    running: str | None = None
    problems: tuple[Problem, ...] = ()

    def renewed(self, app: App, connector: str) -> GivenOffsets:
        """Return the offsets as they are now; those of a file are those that were read."""
        if self.connector is None:
            return self
        there = app if self.profile is None else app.elsewhere(self.profile)
        return given_by_connector(there, self.connector, connector=connector, profile=self.profile)


def gather_given(app: App, offsets: str | None, *, connector: str, stdin: BinaryIO) -> GivenOffsets | None:
    """Read the offsets that `--offsets` names, for `connector`: a file, or CONNECTOR[@PROFILE]; None where it is None.

    A file is `-`, `file:PATH`, a path with a slash, or a name that ends as files of offsets do.
    """
    if offsets is None:
        return None
    if offsets == STDIN or is_file(offsets) or offsets.endswith(_ENDINGS):
        return given_by_file(app, offsets.removeprefix(FILE_PREFIX), connector=connector, stdin=stdin)
    name, at, profile = offsets.rpartition("@")
    if at and name and profile:
        return given_by_connector(app.elsewhere(profile), name, connector=connector, profile=profile)
    return given_by_connector(app, offsets, connector=connector)


def given_by_file(app: App, path: str, *, connector: str, stdin: BinaryIO) -> GivenOffsets:
    """Read those of `connector`, else those of the only connector in the file; raise InputFileError if it has several.

    Keys that Connect ignores are of no connector.
    """
    file = read_offsets_file(app, path, stdin=stdin, body_of=connector)
    owners = {name for table in file.tables() for name in owners_in(table)}
    if connector not in owners and len(owners) != 1:
        names = sorted(owners)
        shown = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[5:] else "")
        raise InputFileError(
            f"{file.name} holds the offsets of {shown or 'no connector'}",
            hint="Give a file with those of one: `eosctl offsets export --connector NAME --store STORE FILE`.",
        )
    owner = connector if connector in owners else owners.pop()
    tables = (under_name(belonging(table, [owner]), connector) for table in file.tables())
    renamed = replace(file, pieces=_spilled(app, tables))
    of = "" if owner == connector or file.places == BODY else f" (of {owner})"
    return GivenOffsets(renamed, f"{file.name}{of}")


def _spilled(app: App, tables: Iterator[Table]) -> list[object]:
    with writing_to(spool_of(app), need=_NEED) as spool:
        return list(spilled_if_several(tables, spool))


def given_by_connector(app: App, source: str, *, connector: str, profile: str | None = None) -> GivenOffsets:
    """Read the offsets of `source` at `app` as KIP-618 documents them: its own topic's, else the global one's.

    Raises NotFoundError if it has none, RefusedError if an open transaction may hide one.
    """
    found = gather_stores(app, connectors=(source,))
    refuse_unknown(found, source)
    refuse_hidden(app, source, stores=found.of(source).values())
    own = found.has_own(source)
    if source in found.dedicated.brokers and source not in found.own:
        raise RefusedError(
            f"the own offsets of {source} are on Kafka brokers that its config names, and can't be read",
            hint="Export them there (`eosctl offsets export`), and give the file.",
        )
    views = offset_views(found.rows(source), source, dedicated_in_use=own)
    records = [view.documented for view in views if view.documented is not None]
    where = "" if profile is None else f" at profile {profile}"
    if not records:
        raise NotFoundError(
            f"connector {source}{where} has no offsets",
            hint=f"`eosctl offsets list --connector {shell_word(source)}` shows them; a name with a slash, or that "
            "ends in .ndjson, .parquet, .json or .yaml, is a file.",
        )
    rows = [
        (number, each.topic, each.partition, each.offset, each.timestamp_ms, each.key, each.value, each.headers)
        for number, each in enumerate(records, 1)
    ]
    table = under_name(incoming_table([*zip(*rows, strict=True)]), connector)
    name = f"the offsets of {source}{where}"
    running, problems = _running(app, source, profile)
    return GivenOffsets(
        OffsetsFile(name, [table]),
        f"connector {source}{where}",
        source,
        profile,
        running,
        (*found.problems(), *problems, *_reset(source, views)),
    )


def _reset(source: str, views: Iterable[OffsetView]) -> list[Problem]:
    """Warn of global offsets whose own one was deleted: the connector itself would start over there."""
    reset = [view.key for view in views if view.documented is not view.runtime and Flag.DELETED in view.flags]
    if not reset:
        return []
    first = json_text(reset[0].partition)
    message = (
        f"{source} has deleted {counted(len(reset), 'offset')} in its own topic, first {first}, and the global ones "
        "are given: it would itself start over there"
    )
    return [Problem(codes.GIVEN_AFTER_RESET, message, codes.GIVEN_AFTER_RESET.next)]


def _running(app: App, source: str, profile: str | None) -> tuple[str | None, list[Problem]]:
    """Return the state of the connector that had the offsets while it runs, or a problem where that is not known."""
    unknown = source_problem(app, profile or "of this command")
    if unknown is not None:
        return None, [unknown]
    running = running_connectors(app, [source])
    return (running[0] if running else None), []
