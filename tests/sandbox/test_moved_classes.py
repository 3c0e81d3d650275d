"""Kafka's own connectors of an earlier release beside a Kafka that has moved classes: their names, and nothing else."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from eosctl.deadline import ignore_events
from eosctl.machine.java import require_java
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars, proxy_options
from eosctl.sandbox.downloads.moved_classes import fit_jars, renamed
from eosctl.sandbox.settings import Jar, jars_behind, read_lock

UTILS = "org/apache/kafka/common/utils"
HEAD = struct.pack(">IHH", 0xCAFEBABE, 0, 55)


def utf8(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">BH", 1, len(data)) + data


def class_file(*names: str) -> bytes:
    """The begin of a class file: a constant of each size between the names and a last one; the rest is not read."""
    constants = [struct.pack(">Bq", 5, 7), struct.pack(">Bd", 6, 0.5), struct.pack(">BHH", 10, 1, 2), b"\x0f\1\0\2"]
    constants += [struct.pack(">BH", 7, 1), struct.pack(">Bi", 3, 1)]
    pool = [*(utf8(name) for name in names), *constants, utf8("last")]
    return HEAD + struct.pack(">H", len(pool) + 2 + 1) + b"".join(pool) + b"after the pool " + UTILS.encode() + b"/Exit"


def test_names_and_types_are_changed_and_nothing_else() -> None:
    names = {f"{UTILS}/Exit".encode(): f"{UTILS}/internals/Exit".encode()}
    old = class_file(f"{UTILS}/Exit", f"(IL{UTILS}/Exit;)V", f"{UTILS}/Exit$Procedure", f"{UTILS}/Time", "Exit")
    new = class_file(
        f"{UTILS}/internals/Exit", f"(IL{UTILS}/internals/Exit;)V", f"{UTILS}/Exit$Procedure", f"{UTILS}/Time", "Exit"
    )
    assert renamed(old, names) == new
    assert renamed(old, {}) == old


def put(path: Path, **classes: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as jar:
        for name, data in classes.items():
            jar.writestr(f"{name}.class", data)
    return path


def test_a_jar_is_copied_where_it_names_what_was_moved(tmp_path: Path) -> None:
    clients = Jar("org.apache.kafka", "kafka-clients", "4.4.0", "0" * 64, 0)
    mirror, other = (Jar("org.apache.kafka", name, "4.3.1", "0" * 64, 0) for name in ("mirror", "client"))
    foreign = Jar("org.example", "thing", "1", "0" * 64, 0)
    there = {f"{UTILS}/internals/Exit": b"", f"{UTILS}/internals/Time": b"", f"{UTILS}/Time": b""}
    old = class_file(f"{UTILS}/Exit", f"{UTILS}/Time")
    path_of = {
        clients: put(tmp_path / "clients.jar", **there),
        mirror: put(tmp_path / "mirror.jar", Mirror=old),
        other: put(tmp_path / "other.jar", Client=class_file(f"{UTILS}/Time")),
        foreign: put(tmp_path / "foreign.jar", Foreign=old),
    }
    (tmp_path / "store").mkdir()
    for _ in range(2):
        found = fit_jars(path_of, "4.4.0", tmp_path / "store")
        (copy,) = (tmp_path / "store").rglob("*.jar")
        assert found == {**path_of, mirror: copy}
        with ZipFile(copy) as jar:
            assert jar.read("Mirror.class") == class_file(f"{UTILS}/internals/Exit", f"{UTILS}/Time")
        made_at = copy.stat().st_mtime_ns
    copy.write_bytes(copy.read_bytes().replace(b"internals", b"eternals!"))  # a copy that somebody changed is not run
    assert fit_jars(path_of, "4.4.0", tmp_path / "store")[mirror] == copy
    assert b"eternals!" not in copy.read_bytes()
    assert copy.stat().st_mtime_ns != made_at


@pytest.mark.live
def test_what_kafkas_connectors_name_is_there() -> None:
    """Those of 4.3.1 ended with NoClassDefFoundError in workers of 4.4.0. No other plugin finds an old name."""
    lock, cache = read_lock("4.4.0"), cache_dir(os.environ)
    paths = ensure_jars(
        lock, cache=cache, java=require_java(os.environ), maven_url=os.environ.get("EOSCTL_MAVEN_URL"),
        on_event=ignore_events, java_options=proxy_options(os.environ), ca_file=ca_file(os.environ),
    )  # fmt: skip
    path_of = dict(zip(lock, paths, strict=True))
    fit = fit_jars(path_of, "4.4.0", cache / "jars")
    there = {name for path in fit.values() for name in names_of(path)}
    behind = jars_behind(lock, "4.4.0")
    assert {jar.artifact for jar in behind if fit[jar] != path_of[jar]} == {
        "connect-file", "connect-mirror", "connect-basic-auth-extension", "connect-test-plugins"
    }  # fmt: skip
    lacking = {name for jar in behind for name in classes_named_in(fit[jar]) if f"{name}.class" not in there}
    assert lacking == set()
    assert f"{UTILS}/AppInfoParser.class" not in there
    assert f"{UTILS}/AppInfoParser" in {name for jar in behind for name in classes_named_in(path_of[jar])}


def names_of(jar: Path) -> list[str]:
    with ZipFile(jar) as file:
        return file.namelist()


def classes_named_in(jar: Path) -> Iterator[str]:
    """The classes of Kafka's that classes of the jar name, as javap's constant pool shows them."""
    with ZipFile(jar) as file:
        for name in file.namelist():
            if name.endswith(".class"):
                yield from kafka_classes(file.read(name))


def kafka_classes(data: bytes) -> Iterator[str]:
    """Those of CONSTANT_Class (7), whose names are constants, too; an array's name is a type."""
    texts, classes, at, index = dict[int, str](), list[int](), 10, 1
    while index < int.from_bytes(data[8:10]):
        tag, first = data[at], int.from_bytes(data[at + 1 : at + 3])
        if tag == 1:
            texts[index] = data[at + 3 : at + 3 + first].decode()
        elif tag == 7:
            classes.append(first)
        at += 3 + first if tag == 1 else {5: 9, 6: 9, 15: 4, 7: 3, 8: 3, 16: 3, 19: 3, 20: 3}.get(tag, 5)
        index += 2 if tag in (5, 6) else 1
    for each in classes:
        name = texts[each].lstrip("[").removeprefix("L").removesuffix(";") if texts[each][0] == "[" else texts[each]
        if name.startswith("org/apache/kafka/"):
            yield name
