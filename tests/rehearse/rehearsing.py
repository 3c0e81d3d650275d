"""Rehearsals in tests: the configs of docs/how-to/rehearse-a-connector.md, and sources that grow meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from eosctl.deadline import ignore_events
from eosctl.machine.java import require_java
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars, proxy_options
from eosctl.sandbox.settings import parse_lock
from tests.conftest import Invoke, Outcome

HERE = Path(__file__).parent
TABLE_SOURCE = HERE.parent / "table_source"
DOCUMENT = (HERE.parents[1] / "docs" / "how-to" / "rehearse-a-connector.md").read_text(encoding="utf-8")
_TICK_S = 0.1
_CREATE = "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT)"


def documented(name: str, **changed: str) -> dict[str, Any]:
    """The connector of that name in the document; `__` in the names of what is changed stands for a dot."""
    blocks = map(json.loads, re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL))
    (found,) = [block for block in blocks if block["name"] == name]
    values = {key.replace("__", "."): value for key, value in changed.items()}
    return {"name": name, "config": {**found["config"], **values}}


def rehearse(invoke: Invoke, folder: Path, *words: str, connector: dict[str, Any] | None = None) -> Outcome:
    """One rehearsal to its end, with its state in `folder`; the connector is one of `documented`."""
    given = []
    if connector is not None:
        path = folder / f"{connector['name']}.json"
        path.write_text(json.dumps(connector), encoding="utf-8")
        given = ["--config", str(path)]
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    told = ["--from", "enabled", "--seed", "1", "-o", "json", "--yes"]
    return invoke("rehearse", *given, *told, *words, environ=environ)


def rows_of(outcome: Outcome) -> dict[str, Any]:
    """Fault -> row."""
    return {row["fault"]: row for row in outcome.json()["data"]["rows"]}


@contextmanager
def every_tick(do: Callable[[], None]) -> Iterator[None]:
    """Calls it ten times a second until the block ends."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(_TICK_S):
            do()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def growing_table(path: Path) -> Iterator[None]:
    """A table `orders` in a database of SQLite, which gets five rows each time."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as database:
        database.execute("PRAGMA journal_mode=WAL")  # a reader of another process is not in the way of the writer
        database.execute(_CREATE)

        def insert() -> None:
            with database:
                database.executemany("INSERT INTO orders (text) VALUES (?)", [("x",)] * 5)

        insert()
        with every_tick(insert):
            yield


@contextmanager
def ended_table(path: Path) -> Iterator[None]:
    """The table with a dozen rows, to which no more come."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(_CREATE)
        database.executemany("INSERT INTO orders (text) VALUES (?)", [("x",)] * 12)
    yield


def table_plugin(folder: Path) -> Path:
    """A plugin path with the JDBC source of tests/table_source and the driver of SQLite."""
    plugin = folder / "plugins" / "table-source"
    plugin.mkdir(parents=True)
    jars = ensure_jars(
        parse_lock((TABLE_SOURCE / "sqlite-jdbc.lock").read_text(encoding="utf-8")),
        cache=cache_dir(os.environ), java=require_java(os.environ), maven_url=os.environ.get("EOSCTL_MAVEN_URL"),
        on_event=ignore_events, java_options=proxy_options(os.environ), ca_file=ca_file(os.environ),
    )  # fmt: skip
    for jar in (*jars, TABLE_SOURCE / "table-source.jar"):
        shutil.copy(jar, plugin)
    return plugin.parent
