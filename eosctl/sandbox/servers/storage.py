"""A broker's storage, formatted once per Kafka version: StorageTool takes a JVM's second, and writes 500 bytes."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from eosctl.core.java.property_edit import set_property
from eosctl.machine.kept_file import KeptFile

_META = "meta.properties"


def storage_template(cache: Path, kafka_version: str, jars: Iterable[Path]) -> KeptFile:
    """Return the place of formatted storage for these jars, whose paths depend on their content.

    Only storage without users belongs there: StorageTool writes their passwords into it, salted.
    """
    digest = hashlib.sha256("\n".join(map(str, jars)).encode()).hexdigest()[:16]
    return KeptFile(cache / "storage", f"storage-{kafka_version}-{digest}", ".zip")


def keep_storage(template: KeptFile, data: Path) -> None:
    """Keep the formatted storage in `data` for the next stack."""
    with tempfile.TemporaryDirectory(dir=data.parent) as directory:
        template.keep(Path(shutil.make_archive(f"{directory}/storage", "zip", data)))


def take_storage(template: KeptFile, data: Path) -> bool:
    """Fill `data` from the template; return False if there is none yet."""
    kept = template.path()
    if kept is not None:
        shutil.unpack_archive(kept, data, "zip")
    return kept is not None


def name_storage(data: Path, *, cluster_id: str, node_id: int) -> None:
    """Set the ids of one node in formatted storage, with an own id of its directory if it has one (Kafka 3.7)."""
    path = data / _META
    text = path.read_text(encoding="ascii")
    text = set_property(set_property(text, "cluster.id", cluster_id), "node.id", str(node_id))
    if "\ndirectory.id=" in text:
        text = set_property(text, "directory.id", kafka_uuid())
    path.write_text(text, encoding="ascii")


def kafka_uuid() -> str:
    """Make a new id as Kafka writes them; without a dash, because none may come first."""
    return urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii").replace("-", "a")
