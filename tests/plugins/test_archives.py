"""The folders of plugin.path as Connect reads them, and jars that somebody made to harm."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from eosctl.core.java.class_file import NotAClassFileError, read_class
from eosctl.plugins.archives import MOST_CLASS_BYTES, MOST_DIRECTORY_BYTES, Plugin, plugin_paths, read_plugin
from tests.plugins.jars import SLOW_SOURCE, TASK, UTILS, class_bytes, write_jar

A, B = class_bytes("x/A", extends=TASK, names=[UTILS]), class_bytes("x/B")


def read(path: Path) -> Plugin:
    return read_plugin(path)


def test_a_class_that_javac_made_is_read() -> None:
    read = read_plugin(SLOW_SOURCE)
    assert (sorted(read.classes), read.unread) == (
        ["eosctl/tests/Failing", "eosctl/tests/SlowSource", "eosctl/tests/SlowSource$Counter"],
        (),
    )
    counter = read.classes["eosctl/tests/SlowSource$Counter"]
    assert (counter.parents, counter.is_concrete) == ((TASK,), True)
    assert ("poll", "()Ljava/util/List;") in counter.declared
    assert ("org/apache/kafka/connect/data/Schema", ("STRING_SCHEMA", "Lorg/apache/kafka/connect/data/Schema;")) in (
        counter.members | read.classes["eosctl/tests/SlowSource"].members
    )


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"\xca\xfe\xba\xbe", A[:40], A[:-3], b"\xde\xad" + A[2:], A[:9] + b"\xff" + A[10:]]
)
def test_what_is_no_class_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotAClassFileError):
        read_class(data)


def test_the_children_of_a_folder_are_its_plugins(tmp_path: Path) -> None:
    """A class file beside them is none: Connect ignores it."""
    write_jar(tmp_path / "uber.jar", A)
    write_jar(tmp_path / "folder" / "lib" / "one.JAR", A)
    (tmp_path / "classes" / "x").mkdir(parents=True)
    (tmp_path / "classes" / "x" / "A.class").write_bytes(A)
    (tmp_path / "A.class").write_bytes(A)
    (tmp_path / "README").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "folder" / "round").symlink_to(tmp_path / "folder")
    paths = plugin_paths(tmp_path)
    assert [each.name for each in paths] == ["classes", "folder", "link", "uber.jar"]
    assert [(sorted(read(each).classes), read(each).unread) for each in paths] == [(["x/A"], ())] * 4
    assert plugin_paths(tmp_path / "uber.jar") == [tmp_path / "uber.jar"]


def test_a_folder_of_classes_may_list_services(tmp_path: Path) -> None:
    (tmp_path / "META-INF" / "services").mkdir(parents=True)
    (tmp_path / "META-INF" / "services" / "x.Spi").write_text("# none\nx.A\n")
    assert read(tmp_path).services == {"x/Spi": frozenset({"x/A"})}


def test_beside_jars_class_files_do_not_count(tmp_path: Path) -> None:
    """PluginUtils.pluginUrls returns the archives alone."""
    write_jar(tmp_path / "p" / "a.jar", B)
    (tmp_path / "p" / "x").mkdir()
    (tmp_path / "p" / "x" / "A.class").write_bytes(A)
    assert sorted(read(tmp_path / "p").classes) == ["x/B"]


def test_what_no_class_loader_finds_is_not_there(tmp_path: Path) -> None:
    """Jars in a jar, and classes at another place than that of their name."""
    inner = write_jar(tmp_path / "inner.jar", A).read_bytes()
    path = write_jar(tmp_path / "p.jar", B, more={"lib/inner.jar": inner, "BOOT-INF/classes/x/A.class": A})
    found = read(path)
    assert (sorted(found.classes), found.unread) == (["x/B"], ())


def test_every_release_of_a_multi_release_jar_counts(tmp_path: Path) -> None:
    newer = class_bytes("x/B", names=["y/C"])
    found = read(write_jar(tmp_path / "p.jar", B, more={"META-INF/versions/11/x/B.class": newer}))
    assert "y/C" in found.classes["x/B"].classes
    assert found.copies == {}


def test_of_two_jars_the_first_path_counts(tmp_path: Path) -> None:
    write_jar(tmp_path / "p" / "b-2.0.jar", A)
    write_jar(tmp_path / "p" / "a-1.0.jar", A)
    found = read(tmp_path / "p")
    assert (found.classes["x/A"].file, found.copies) == ("a-1.0.jar", {"x/A": ("b-2.0.jar",)})
    assert found.versions == {"a-1.0.jar": "1.0", "b-2.0.jar": "2.0"}


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\nImplementation-Version: 7.1\r\n"}, "7.1"),
        ({"META-INF/maven/g/a/pom.properties": b"version=7.2\n"}, "7.2"),
        ({f"META-INF/maven/g/{name}/pom.properties": b"version=7.2\n" for name in "ab"}, "1.0-rc1"),
        ({}, "1.0-rc1"),
    ],
)
def test_the_version_of_a_jar(tmp_path: Path, more: dict[str, bytes], version: str) -> None:
    assert read(write_jar(tmp_path / "p-1.0-rc1.jar", A, more=more)).versions == {"p-1.0-rc1.jar": version}


def damaged(path: Path) -> None:
    write_jar(path, A, B)
    data = bytearray(path.read_bytes())
    at = data.find(b"x/B.class") + len("x/B.class")
    data[at : at + 20] = bytes(20)
    path.write_bytes(data)


def large_class(path: Path) -> None:
    write_jar(path, A, more={"x/B.class": b"\xca\xfe\xba\xbe" + bytes(MOST_CLASS_BYTES)})


def large_directory(path: Path) -> None:
    write_jar(path, A)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\x05\x06") + 12, MOST_DIRECTORY_BYTES + 1)
    path.write_bytes(data)


def encrypted(path: Path) -> None:
    write_jar(path, A)
    data = bytearray(path.read_bytes())
    data[data.find(b"PK\x03\x04") + 6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def other_compression(path: Path) -> None:
    write_jar(path, A)
    data = bytearray(path.read_bytes())
    data[data.find(b"PK\x03\x04") + 8] = 99
    data[data.find(b"PK\x01\x02") + 10] = 99
    path.write_bytes(data)


def wrong_magic(path: Path) -> None:
    write_jar(path, A, more={"x/B.class": b"\xde\xad" + B[2:]})


def no_archive(path: Path) -> None:
    path.write_bytes(b"MZ" + bytes(1000))


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere.jar"))


@pytest.mark.parametrize(
    "make",
    [
        *(damaged, large_class, large_directory, encrypted, other_compression, wrong_magic, no_archive, empty_file),
        *(pipe, dangling),
    ],
)
def test_what_cant_be_read_is_named(tmp_path: Path, make: object) -> None:
    """None of these is passed over: what was not read may name anything."""
    assert callable(make)
    write_jar(tmp_path / "p" / "good.jar", class_bytes("x/Good"))
    make(tmp_path / "p" / "bad.jar")
    found = read(tmp_path / "p")
    assert "x/Good" in found.classes
    assert [each.partition(":")[0] for each in found.unread] in (["bad.jar"], ["nowhere.jar"])


def test_a_bomb_of_many_classes_ends_the_reading(tmp_path: Path) -> None:
    """What exceeds the limit of a plugin is not unpacked, and named."""
    classes = [class_bytes(f"x/C{number}") for number in range(9)]
    found = read_plugin(write_jar(tmp_path / "p.jar", *classes), most_bytes=5 * len(classes[0]))
    assert (len(found.classes), len(found.unread)) == (5, 4)
