"""How many ids each application had at the last look: one file per cluster, replaced as a whole or not at all."""

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
    """What was counted at one look: the key of each application, and how many ids it had."""

    looked_at_ms: int
    ids: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    version: int = _VERSION


def read_seen(app: App, cluster_id: str) -> Seen | None:
    """The last look at this cluster; None where there was none, or where its file can't be read or understood."""
    try:
        found = typed(json_of(read_own(_path(app, cluster_id))), Seen)
    except (OSError, ValueError):
        return None
    return found if found.version == _VERSION else None


def keep_seen(app: App, cluster_id: str, seen: Seen) -> None:
    """Puts this look in the place of the last one; raises OSError, and then the last one is still there."""
    own_folder(app.state_dir, _FOLDER)
    write_whole(_path(app, cluster_id), lambda file: file.write(msgspec.json.encode(seen)))


def _path(app: App, cluster_id: str) -> Path:
    return app.state_dir / _FOLDER / f"{quote(cluster_id, safe='')}.json"
