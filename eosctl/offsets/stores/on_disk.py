"""Keeps the parts of a plan too large for memory under the state directory, in a file without a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eosctl.app import App
from eosctl.engine.files import SpillFile
from eosctl.errors import EosctlError


def spool_of(app: App) -> SpillFile:
    """Return the spool for the parts of one plan."""
    return SpillFile(app.state_dir / "parts")


@contextmanager
def writing_to(spool: SpillFile, *, need: str) -> Iterator[SpillFile]:
    """Turn an OSError in the block into an EosctlError, which says how much room the parts `need`."""
    try:
        yield spool
    except OSError as exc:
        raise EosctlError(
            f"cannot write {exc.filename or spool.folder}: {exc.strerror or exc}",
            hint=f"{need} Nothing was written to Kafka.",
        ) from exc
