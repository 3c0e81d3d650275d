"""Kafka's own connectors of an earlier release, made fit for a Kafka that has moved classes they name.

Kafka 4.4 moved most of org.apache.kafka.common.utils to its package `internals` (KAFKA-20297), and of its own
connectors Maven Central had 4.3.1 as the newest. A copy of such a jar has the new names in the constant pools of its
classes (JVMS 4.4), and no other change. No class is added under an old name, so a plugin of a user that needs one
fails in the sandbox as it does elsewhere.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

from msgspec.structs import replace

from eosctl.core.java.class_file import UTF8, constants_of
from eosctl.machine.files import write_whole
from eosctl.sandbox.downloads.jars import is_there, path_in
from eosctl.sandbox.settings import Jar, jars_behind

_BEFORE_4_4, _SINCE_4_4 = "org/apache/kafka/common/utils/", "org/apache/kafka/common/utils/internals/"
_TYPE = re.compile(rb"(?<=L)[\w/$]+(?=;)")  # of a parameter or a field


def fit_jars(path_of: Mapping[Jar, Path], kafka_version: str, store: Path) -> dict[Jar, Path]:
    """Return the paths to start with: in place of a jar that names moved classes, its copy with their new names.

    A copy is recreated each time from a jar that was held to its lock, and written where the store has another one.
    """
    behind = jars_behind(path_of, kafka_version)
    clients = [path for jar, path in path_of.items() if jar.artifact == "kafka-clients"] if behind else []
    moved = _moved(clients)
    return {**path_of, **{jar: _fit(jar, path_of[jar], moved, store) for jar in behind}}


def _moved(jars: Sequence[Path]) -> dict[bytes, bytes]:
    """Return the classes that Kafka has in `internals` alone: their names before 4.4 -> those since."""
    names: set[str] = set()
    for jar in jars:
        with ZipFile(jar) as file:
            names.update(name.removesuffix(".class") for name in file.namelist() if name.endswith(".class"))
    since = [name for name in names if name.startswith(_SINCE_4_4)]
    pairs = {_BEFORE_4_4 + name.removeprefix(_SINCE_4_4): name for name in since}
    return {before.encode(): name.encode() for before, name in pairs.items() if before not in names}


def _fit(jar: Jar, path: Path, moved: Mapping[bytes, bytes], store: Path) -> Path:
    copy, is_changed = io.BytesIO(), False
    with ZipFile(path) as old, ZipFile(copy, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            fit = renamed(data, moved) if entry.filename.endswith(".class") else data
            is_changed |= fit != data
            new.writestr(entry, fit)
    if not is_changed:
        return path
    data = copy.getvalue()
    made = replace(jar, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    target = path_in(store, made)
    if not is_there(target, made):
        target.parent.mkdir(exist_ok=True)
        write_whole(target, lambda file: file.write(data))
    return target


def renamed(data: bytes, names: Mapping[bytes, bytes]) -> bytes:
    """Return a class file that names other classes: `names` has those to replace, and their replacements."""
    parts, pool_end = [data[:10]], 10
    for _index, kind, begin, pool_end in constants_of(data):
        constant = data[begin:pool_end]
        if kind == UTF8:
            text = _TYPE.sub(lambda found: names.get(found[0], found[0]), constant[3:])
            text = names.get(text, text)
            constant = struct.pack(">BH", UTF8, len(text)) + text
        parts.append(constant)
    return b"".join([*parts, data[pool_end:]])
