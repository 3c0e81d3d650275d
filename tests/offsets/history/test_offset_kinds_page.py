"""docs/offset-kinds.md is the table of known sources, made from it by `--update-golden`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from eosctl.offsets.history.sources import KNOWN_SOURCES, KnownSource

PAGE = Path(__file__).parents[3] / "docs" / "offset-kinds.md"
HEAD = """\
# Offsets that eosctl can compare

Connectors whose source offsets `eosctl offsets set`, `diff`, `merge`, `import`, `restore`, `log` and `lint`, `doctor`
and `audit` can compare, how they are recognized, and what must hold in the source. Made from the table in the code by
`pytest --update-golden tests/offsets/history/test_offset_kinds_page.py`.

The second of two offsets is **ahead** (what lies between is not read), **behind** (it is read again), **equal**,
**mixed** (ahead for some servers, domains or redo threads, and behind for others) or **incomparable**. Incomparable is
whatever is not known: a value of an unexpected form or type, a member that is not in this table (a newer version of the
connector may count by it), the state of an incremental snapshot, and every difference between offsets of a connector
that is not in this table. No public source connector for Iceberg was found, and Confluent's S3 source is not public.

A connector is recognized by the members of its source partitions and offsets, not by its class: forks have classes of
their own, and a deleted connector has none. What its config names is known of the classes that are listed, and of no
others; a value that a config provider resolves is not known. An offset with which the connector was in its snapshot is
behind one without: it begins the snapshot again.
"""


def page() -> str:
    return HEAD + "".join("\n" + "\n".join(entry(source)) + "\n" for source in KNOWN_SOURCES)


def entry(source: KnownSource) -> Iterator[str]:
    yield f"## {source.name}"
    yield ""
    yield f"* Classes: `{source.classes.replace(', ', '`, `')}`"
    yield f"* Source partition: {' or '.join(names(sorted(each)) for each in source.partitions)}"
    yield f"* Named by the config: {source.of_config.named_by} ({source.of_config.evidence})"
    yield f"* Offset: {' or '.join(names(sorted(each)) for each in source.offsets)}"
    yield f"* Compared by: {names(source.positions)}"
    if source.labels:
        yield f"* No part of the position: {names(source.labels)}"
    if source.in_snapshot:
        yield f"* In a snapshot: {names(source.in_snapshot)}"
    yield f"* Evidence of the order: {source.evidence}"
    yield f"* {source.keeps[0].upper()}{source.keeps[1:]}."
    if source.instead:
        yield f"* {source.instead}"
    for meaning in source.of_config.meanings:
        yield f"* {names(meaning.properties)} changed: {meaning.text}"


def names(members: Iterable[str]) -> str:
    return ", ".join(f"`{member}`" for member in members)


def test_the_page_is_the_table(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
