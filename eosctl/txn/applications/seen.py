"""The number of ids per application at the last look: one file per cluster, replaced atomically."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec
from msgspec import Struct

from eosctl.app import App
from eosctl.core.kept.typed_json import json_of, typed
from eosctl.machine.files import own_folder, read_own, write_whole

_FOLDER = "applications"
_VERSION = 1


class Seen(Struct, frozen=True):
    """The counts of one look: the number of ids per application key."""

    looked_at_ms: int
    ids: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    version: int = _VERSION


def read_seen(app: App, cluster_id: str) -> Seen | None:
    """Read the last look at this cluster; return None if there is none, or if its file can't be read or parsed."""
    try:
        found = typed(json_of(read_own(_path(app, cluster_id))), Seen)
    except (OSError, ValueError):
        return None
    return found if found.version == _VERSION else None


def keep_seen(app: App, cluster_id: str, seen: Seen) -> None:
    """Replace the last look by this one; if that raises OSError, the last one is still there."""
    own_folder(app.state_dir, _FOLDER)
    write_whole(_path(app, cluster_id), lambda file: file.write(msgspec.json.encode(seen)))


def _path(app: App, cluster_id: str) -> Path:
    return app.state_dir / _FOLDER / f"{quote(cluster_id, safe='')}.json"
