"""What of a large plan does not fit into memory waits under the state directory, in a file without a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eosctl.app import App
from eosctl.engine.files import Spool
from eosctl.errors import EosctlError


def spool_of(app: App) -> Spool:
    """For the parts of one plan."""
    return Spool(app.state_dir / "parts")


@contextmanager
def writing_to(spool: Spool, *, need: str) -> Iterator[Spool]:
    """An OSError in the block becomes an EosctlError, which says how much room the parts `need`."""
    try:
        yield spool
    except OSError as exc:
        raise EosctlError(
            f"cannot write {exc.filename or spool.folder}: {exc.strerror or exc}",
            hint=f"{need} Nothing was written to Kafka.",
        ) from exc
