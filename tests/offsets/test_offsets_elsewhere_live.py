"""`TOPIC@PROFILE` between two real clusters: what lies there is seen, brought here, and written there.

Everything is checked by plain consumers. `tests/offsets/test_offsets_elsewhere.py` has the cases, in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from eosctl.core.offsets.names import partition_for
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.migrate.spark.cluster import PARTITIONS, Cluster, Line
from tests.sandbox_fixtures import GROUP, PATIENCE_S, FileSource, once_there, sandbox, wait_until

pytestmark = pytest.mark.live

JUNK = b"no key of Connect's"


@pytest.fixture(scope="module")
def far_away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Another cluster: a broker, whose workers are gone."""
    with sandbox(StackSpec(groups=()), tmp_path_factory, name="far-away") as started:
        yield started


@dataclass
class Scene:
    """A connector here that is STOPPED at 8; there its offset is 4, written later, and one more of another file."""

    source: FileSource
    here: Cluster
    there: Cluster
    ids: dict[str, str]
    run: Callable[..., Any]

    @property
    def topic(self) -> str:
        return self.there.name

    @property
    def key(self) -> bytes:
        return self.key_of(str(self.source.path))

    def key_of(self, file: str) -> bytes:
        return f'["{self.source.name}",{{"filename":"{file}"}}]'.encode()

    def there_now(self) -> list[Line]:
        """Every record there, by key, those of one in their order: partitions come as they like."""
        told = [(message.key() or b"", message.value()) for message in self.there.messages(self.topic)]
        return sorted(told, key=itemgetter(0))

    def here_now(self) -> dict[bytes, tuple[int, bytes | None]]:
        """Partition and newest value of each key of this connector in the global topic here."""
        found = self.here.committed("connect-offsets").items()
        return {key: placed for key, placed in found if self.source.name.encode() in key}

    def at_home(self, values: Mapping[bytes, bytes | None]) -> dict[bytes, tuple[int, bytes | None]]:
        """Each value with the partition that Connect's producer gives its key here."""
        told = AdminClient({"bootstrap.servers": self.here.servers}).list_topics("connect-offsets", PATIENCE_S)
        partitions = len(told.topics["connect-offsets"].partitions)
        assert partitions != PARTITIONS, "else nothing is shown of a key that has another partition there"
        return {key: (partition_for(key, partitions), value) for key, value in values.items()}


def cluster_id(servers: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    return str(admin.describe_cluster().result(PATIENCE_S).cluster_id)


@pytest.fixture
def scene(stack: Stack, far_away: Stack, invoke: Invoke, stopped: FileSource, unique: str, tmp_path: Path) -> Scene:
    ids = {"here": cluster_id(stack.bootstrap_servers), "there": cluster_id(far_away.bootstrap_servers)}
    here = {
        "bootstrap_server": stack.bootstrap_servers,
        "group_id": GROUP,
        "connect_url": stack.urls(GROUP),
        "expect": {"kafka_cluster_id": ids["here"]},
    }
    there = {
        "bootstrap_server": far_away.bootstrap_servers,
        "group_id": "gone",
        "offset_topic": unique,
        "expect": {"kafka_cluster_id": ids["there"]},
    }
    mistaken = {**there, "expect": {"kafka_cluster_id": ids["here"]}}
    lost = {**here, "expect": {"kafka_cluster_id": ids["there"]}}
    profiles = {"here": here, "there": there, "mistaken": mistaken, "lost": lost}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"current": "here", "profiles": profiles}))
    config.chmod(0o600)

    def run(*words: str) -> Any:
        return invoke("offsets", *words, "--config", str(config), "-o", "json").json()

    made = Scene(
        stopped,
        Cluster(stack.bootstrap_servers, "connect-offsets"),
        Cluster(far_away.bootstrap_servers, unique),
        ids,
        run,
    )
    made.there.create(unique)
    made.there.write(unique, [(made.key, b'{"position":4}'), (made.key_of("gone.txt"), b'{"position":77}')])
    return made


def test_list_and_diff_show_both_and_lint_looks_there(scene: Scene) -> None:
    listed = scene.run("list", "--connector", scene.source.name, "--store", "global@there")
    cells = {row["key"]: (row["stores"]["global"], row["stores"]["global@there"]) for row in listed["data"]["rows"]}
    values = {key: tuple(cell and cell["value"] for cell in pair) for key, pair in cells.items()}
    assert values == {
        scene.key.decode(): ({"position": 8}, {"position": 4}),
        scene.key_of("gone.txt").decode(): (None, {"position": 77}),
    }

    compared = scene.run("diff", "--connector", scene.source.name, f"{scene.topic}@there", "global")
    assert compared["exit_code"] == 3
    assert compared["data"]["clusters"] == {f"{scene.topic}@there": scene.ids["there"], "global": scene.ids["here"]}
    counts = compared["data"]["summary"]["counts"]
    assert (counts["differs"], counts["only_left"], counts["only_right"]) == (1, 1, 0)

    scene.there.write(scene.topic, [(JUNK, b"1")])
    found = scene.run("lint", "--store", "global@there")
    assert (found["exit_code"], found["target"]["kafka_cluster_id"]) == (3, scene.ids["there"])
    assert found["data"]["summary"]["codes"]["key_not_json"] == 1


def test_merge_brings_over_what_is_missing_and_the_task_goes_on_from_there(scene: Scene) -> None:
    before = scene.there_now()
    merge = ("merge", "--connector", scene.source.name, "--from", "global@there", "--into", "global", "--yes")
    done = scene.run(*merge)
    assert (done["exit_code"], done["data"]["summary"]["written"]) == (0, 1), done["errors"]
    missing, here = {scene.key_of("gone.txt"): b'{"position":77}'}, {scene.key: b'{"position":8}'}
    assert scene.here_now() == scene.at_home(here | missing)

    done = scene.run(*merge, "--prefer", "newest")
    assert (done["exit_code"], done["data"]["summary"]["written"]) == (0, 1), done["errors"]
    assert scene.here_now() == scene.at_home({scene.key: b'{"position":4}'} | missing)
    assert scene.there_now() == before

    scene.source.set_state("resume")
    scene.source.wait_running()
    scene.source.wait_position(8)
    lines = once_there(3, lambda: list(scene.here.messages(scene.source.topic)))
    assert [message.value() for message in lines] == [b"one", b"two", b"two"]


def test_what_is_exported_there_is_imported_here_and_there(scene: Scene, tmp_path: Path) -> None:
    path = str(tmp_path / "offsets.ndjson")
    exported = scene.run("export", "--store", "global@there", path)
    assert (exported["target"]["kafka_cluster_id"], exported["data"]["summary"]["records"]) == (scene.ids["there"], 2)
    back = scene.run("import", path, "--store", f"{scene.topic}-copy@there", "--workers-down", "--yes")
    assert (back["exit_code"], back["target"]["kafka_cluster_id"]) == (0, scene.ids["there"]), back["errors"]
    assert scene.there.committed(f"{scene.topic}-copy") == scene.there.committed(scene.topic)

    taken = scene.run("import", path, "--store", "global", "--yes")
    assert (taken["exit_code"], taken["target"]["kafka_cluster_id"]) == (0, scene.ids["here"]), taken["errors"]
    there = scene.there.committed(scene.topic)
    assert scene.here_now() == scene.at_home({key: value for key, (_partition, value) in there.items()})
    undone = scene.run("restore", taken["data"]["backup"], "--yes")
    assert undone["exit_code"] == 0, undone["errors"]
    assert scene.here_now()[scene.key][1] == b'{"position":8}'


def test_a_profile_that_expects_another_cluster_writes_nothing(scene: Scene, tmp_path: Path) -> None:
    path = str(tmp_path / "offsets.ndjson")
    scene.run("export", "--store", "global@there", path)
    before = (scene.here_now(), scene.there_now())
    merge = ("merge", "--connector", scene.source.name, "--from", "global@there", "--into", "global", "--yes")
    refused = {
        "lost": scene.run(*merge, "--prefer", "newest", "-p", "lost"),
        "mistaken": scene.run("import", path, "--store", f"{scene.topic}-copy@mistaken", "--workers-down", "--yes"),
    }
    for done in refused.values():
        (error,) = done["errors"]
        assert (done["exit_code"], error["code"]) == (6, "refused"), error
        assert scene.ids["here"] in error["message"]
        assert scene.ids["there"] in error["message"]
    assert (scene.here_now(), scene.there_now()) == before


def test_a_connector_is_followed_to_brokers_of_its_own(
    stack: Stack, far_away: Stack, file_source: FileSource, invoke: Invoke, target_flags: list[str]
) -> None:
    """Its offsets were looked for here, in a topic that may be anybody's, and a switch of it was refused."""
    source, own, following = file_source, f"own-{file_source.name}", f"next-{file_source.name}"
    there = Cluster(far_away.bootstrap_servers, own)
    key = f'["{source.name}",{{"filename":"{source.path}"}}]'.encode()

    def run(*words: str) -> Any:
        return invoke(*target_flags, "offsets", *words, "--connector", source.name, "-o", "json").json()

    brokers = {f"{kind}.override.bootstrap.servers": there.servers for kind in ("producer", "consumer", "admin")}
    source.append("one", "two")
    source.put(**brokers, **{"offsets.storage.topic": own})
    source.wait_position(8)

    listed = run("list")
    [row] = listed["data"]["rows"]
    assert (row["stores"]["dedicated"]["topic"], row["stores"]["dedicated"]["value"]) == (own, {"position": 8})
    told = [each["message"] for each in listed["errors"] if each["code"] == "other_cluster"]
    assert told == [
        f"{source.name}: its own offsets are in topic {own} on cluster {cluster_id(there.servers)} "
        f"({there.servers}), and are read there"
    ]
    assert run("diff")["data"]["clusters"] == {
        "global": cluster_id(stack.bootstrap_servers),
        "dedicated": cluster_id(there.servers),
    }
    linted = invoke(*target_flags, "offsets", "lint", "-o", "json").json()
    assert own in linted["data"]["topics"]

    checked = invoke(*target_flags, "connectors", "check", source.name, "-o", "json").json()
    assert checked["data"]["rows"] == [], "its id is known there, and only there"
    fence = ("fence", "--connector", source.name, "--tasks", "1", "--live", "--dry-run", "-o", "json")

    def planned() -> Any:
        [row] = invoke(*target_flags, *fence).json()["data"]["rows"]
        return row["outcome"], row["before"]["state"]

    wait_until(lambda: planned() == ("would_fence", "CompleteCommit"), what="the last commit to be over")

    moved = run("switch", "--to", following, "--yes")
    assert moved["exit_code"] == 0, moved["errors"]
    source.append("six")
    source.wait_position(12)
    assert there.committed(following)[key][1] == b'{"position":12}'
    assert there.committed(own)[key][1] == b'{"position":8}', "nobody writes it any more"
    lines = once_there(3, lambda: list(there.messages(source.topic)))
    assert [message.value() for message in lines] == [b"one", b"two", b"six"]
