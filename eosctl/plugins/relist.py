"""For developers: `python -m eosctl.plugins.relist` reads the jars of Kafka's releases and writes kafka-classes.txt.

Run once per new release, with its version in `RELEASES`; users never do. It needs `mvn` and the `jimage` of a JDK, and
some minutes. It trusts what Maven Central serves today: read the difference before committing it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

from eosctl.core.java.class_file import ClassFile, Member, read_class
from eosctl.machine.children import child_environ
from eosctl.plugins.kafka_classes import FILE_NAME, KAFKA, member_text

RELEASES = (
    *("3.3.2", "3.4.1", "3.5.1", "3.6.2", "3.7.2", "3.8.1", "3.9.2"),
    *("4.0.0", "4.1.1", "4.2.0", "4.3.1", "4.4.0"),
)
"""One release per version: patch releases neither add nor remove public classes."""
ARTIFACTS = (
    *("kafka_2.13", "connect-runtime", "connect-api", "connect-json", "connect-transforms", "connect-file"),
    *("connect-mirror", "connect-mirror-client", "connect-basic-auth-extension", "kafka-tools", "kafka-streams"),
)
"""What a worker has in its class path; everything else of Kafka follows from it."""
NOT_PUBLISHED = {
    "3.9.2": ("connect-basic-auth-extension",),
    "4.4.0": ("connect-file", "connect-mirror", "connect-mirror-client", "connect-basic-auth-extension"),
}
"""Jars that Maven Central did not have: of the classes that the release before has in them nothing is known."""
_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>eosctl</groupId><artifactId>classes</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)
_USED = tuple(f"{KAFKA}{each}/" for each in ("common", "clients", "connect"))
_OWN = tuple(
    f"{KAFKA}{each}/"
    for each in ("common/message", "common/network", "common/protocol", "common/requests", "connect/runtime")
)
_NO_INIT = frozenset({"<init>", "<clinit>"})
_PUBLIC = 0x0001
Release = Mapping[str, Mapping[str, ClassFile]]
"""Artifact -> name -> class."""


def _has_members(name: str) -> bool:
    """Return whether members of a class are worth a line: those of what plugins use, not of what only Kafka does."""
    return name.startswith(_USED) and not name.startswith(_OWN) and "/internals/" not in name


def read_release(jars: Iterable[Path]) -> dict[str, dict[str, ClassFile]]:
    """Return the classes of each artifact among the jars of a release; shaded libraries are left out."""
    found: dict[str, dict[str, ClassFile]] = {}
    for jar in jars:
        with ZipFile(jar) as archive:
            names = (
                name
                for name in archive.namelist()
                if name.endswith(".class") and name.startswith(KAFKA) and "/shaded/" not in name
            )
            read = (read_class(archive.read(name)) for name in names)
            found[jar.name.rpartition("-")[0]] = {each.name: each for each in read}
    return found


def public_classes(release: Release) -> dict[str, ClassFile]:
    """Return the public classes of all artifacts, by name."""
    return {name: each for part in release.values() for name, each in part.items() if each.flags & _PUBLIC}


def table_lines(releases: Mapping[str, Release], jdk: Mapping[str, ClassFile]) -> Iterator[str]:
    """Yield the lines of the table; `releases` are in their order."""
    order = list(releases)
    public = {version: public_classes(release) for version, release in releases.items()}
    present, unknown = _bits(public), defaultdict[str, int](int)
    for index, version in enumerate(order):
        for artifact in NOT_PUBLISHED.get(version, ()) if index else ():
            for name in releases[order[index - 1]].get(artifact, {}):
                unknown[name] |= 0 if present[name] >> index & 1 else 1 << index
    members = _members(releases, public, unknown, jdk)
    yield f"releases {' '.join(order)}"
    packages = defaultdict[str, list[str]](list)
    for name in present:
        packages[name.rpartition("/")[0]].append(name)
    for package, names in sorted(packages.items()):
        yield f"package {package}"
        alike = defaultdict[tuple[int, int], list[str]](list)
        for name in sorted(names):
            alike[present[name], unknown[name]].append(name.rpartition("/")[2])
        for (bits, unsure), simple in sorted(alike.items(), key=lambda each: each[1]):
            yield f"classes {bits:x}{f'?{unsure:x}' if unsure else ''} {' '.join(simple)}"
        for name in sorted(names):
            if members.get(name):
                yield f"class {name.rpartition('/')[2]}"
                yield from (f"member {bits:x} {text}" for text, bits in sorted(members[name].items()))


def _bits(public: Mapping[str, Mapping[str, ClassFile]]) -> dict[str, int]:
    """Return the releases that have each class, a bit each."""
    present = defaultdict[str, int](int)
    for index, classes in enumerate(public.values()):
        for name in classes:
            present[name] |= 1 << index
    return present


def _members(
    releases: Mapping[str, Release],
    public: Mapping[str, Mapping[str, ClassFile]],
    unknown: Mapping[str, int],
    jdk: Mapping[str, ClassFile],
) -> dict[str, dict[str, int]]:
    """Return the members that some release of a class lacks, with the releases that have them.

    A release whose class inherits from a class that was not read has every member.
    """
    found: dict[str, dict[Member, int]] = defaultdict(lambda: defaultdict(int))
    every = defaultdict[str, int](int)
    for index, (version, release) in enumerate(releases.items()):
        everything = {name: each for part in release.values() for name, each in part.items()}
        for name in filter(_has_members, public[version]):
            resolved = _resolved(name, everything, jdk)
            if resolved is None:
                every[name] |= 1 << index
            for member in resolved or ():
                found[name][member] |= 1 << index
    present = _bits(public)
    result = {}
    for name, members in found.items():
        sure = {each: bits | every[name] | unknown.get(name, 0) for each, bits in members.items()}
        lacking = {member_text(each): bits for each, bits in sure.items() if bits & present[name] != present[name]}
        result[name] = lacking
    return result


def _resolved(name: str, ours: Mapping[str, ClassFile], jdk: Mapping[str, ClassFile]) -> set[Member] | None:
    """Return the members that a class has or inherits; None where it inherits from a class that was not read."""
    read = ours.get(name) or jdk.get(name)
    if read is None:
        return None
    members = set(read.visible)
    for parent in read.parents:
        inherited = _resolved(parent, ours, jdk)
        if inherited is None:
            return None
        members |= {each for each in inherited if each[0] not in _NO_INIT}
    return members


def _fetch(version: str, folder: Path) -> list[Path]:
    """Let Maven copy the jars of a release into a folder; return those of Kafka."""
    wanted = (each for each in ARTIFACTS if each not in NOT_PUBLISHED.get(version, ()))
    (folder / "pom.xml").write_text(
        _POM.format("".join(_DEPENDENCY.format(each, version) for each in wanted)), encoding="utf-8"
    )
    goals = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DincludeGroupIds=org.apache.kafka"]
    command = ["mvn", "--quiet", "--batch-mode", *goals, f"-DoutputDirectory={folder / 'jars'}"]
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, env=child_environ())
    return sorted((folder / "jars").glob("*.jar"))


def _read_jdk(java_home: Path, folder: Path) -> dict[str, ClassFile]:
    """Return the classes of the JDK's own base module, from which Kafka's inherit."""
    modules = java_home / "lib" / "modules"
    command = ["jimage", "extract", "--dir", str(folder), "--include", "regex:/java.base/java/.*", str(modules)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=child_environ())
    read = (read_class(path.read_bytes()) for path in sorted(folder.rglob("*.class")))
    return {each.name: each for each in read}


def main() -> None:
    """Write the table beside this file."""
    parser = argparse.ArgumentParser(description="Write the table of Kafka's public classes.")
    parser.add_argument("java_home", type=Path, metavar="JAVA_HOME", help="A JDK with jimage and lib/modules.")
    java_home = parser.parse_args().java_home
    releases = {}
    for version in RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            releases[version] = read_release(_fetch(version, Path(folder)))
        print(f"{version}: {sum(map(len, releases[version].values()))} classes", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        jdk = _read_jdk(java_home, Path(folder))
    target = Path(__file__).with_name(FILE_NAME)
    target.write_text("".join(f"{line}\n" for line in table_lines(releases, jdk)), encoding="utf-8")
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
