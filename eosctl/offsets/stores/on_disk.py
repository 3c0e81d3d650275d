"""What of a large plan does not fit into memory waits under the state directory, in files without names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eosctl.app import App
from eosctl.errors import EosctlError


@contextmanager
def parts_folder(app: App, *, need: str) -> Iterator[Path]:
    """The folder of these files; an OSError in the block becomes an EosctlError, which says how much they `need`."""
    folder = app.state_dir / "parts"
    try:
        yield folder
    except OSError as exc:
        raise EosctlError(
            f"cannot write {exc.filename or folder}: {exc.strerror or exc}",
            hint=f"{need} Nothing was written to Kafka.",
        ) from exc
