"""Reads the workers' properties files again: they are edited during a roll."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.config import parse_worker_config


def with_files(app: App, paths: Sequence[Path]) -> App:
    """Return an App with the current files of workers: those given with -w, and those at `paths`."""
    sources = [config.properties.source for config in app.target.worker_configs]
    unique = dict.fromkeys([*(str(Path(source).expanduser().resolve()) for source in sources),
                            *(str(path.resolve()) for path in paths)])  # fmt: skip
    configs = []
    for source in unique:
        try:
            text = Path(source).read_bytes().decode("iso-8859-1")
        except OSError:
            continue
        servers = app.target.client.bootstrap_servers if app.target.client else ()
        configs.append(parse_worker_config(text, source=source, group_id=app.target.group_id, servers=servers))
    return replace(app, target=replace(app.target, worker_configs=tuple(configs)))
