"""Source and target may be one topic, by whatever names: what would be read and written over is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.offsets.views import Policy
from eosctl.core.records import record_line
from eosctl.errors import EosctlError, ExitCode, RefusedError
from eosctl.migrate.run import verify_plan
from tests.fakes.faults import Call
from tests.fakes.migration import SOURCE, Scene

SWAP, CHAIN = {"b": "c", "c": "b"}, {"b": "c", "c": "d"}
KEYS = 2


def key(name: str, number: int) -> bytes:
    return b'["%s",{"f":"%d"}]' % (name.encode(), number)


def moving(tmp_path: Path) -> Scene:
    """Connectors b and c in the source, two tasks at a time."""
    scene = Scene(tmp_path, partitions=4)
    scene.stages.parallelism = 2
    for number in range(KEYS):
        scene.put(SOURCE, {key(name, number): b'{"of":"%s"}' % name.encode() for name in ("b", "c")})
    return scene


def wanted(renames: Mapping[str, str], **more: Any) -> dict[str, Any]:
    selection = Selection(connectors=("b", "c"))
    return {"target": "global", "renames": renames, "policy": Policy.TAKE_SOURCE, "selection": selection, **more}


@pytest.mark.parametrize(
    "request_", [wanted(SWAP), wanted(CHAIN), wanted({"b": "c"}), wanted({}, sources=("more", "global"))]
)
def test_what_is_read_and_written_over_is_refused(tmp_path: Path, request_: dict[str, Any]) -> None:
    """Cut off, it could not be resumed, and what the hint told made one mixture of the offsets of two connectors."""
    scene = moving(tmp_path)
    scene.add_topic("more", 4, key("b", 0), key("c", 0))
    before = scene.topics.newest(SOURCE)
    with pytest.raises(RefusedError, match="could not go on") as refused:
        scene.plan(**request_)
    assert "eosctl offsets export --store connect-offsets offsets.ndjson" in str(refused.value.hint)
    assert (scene.topics.newest(SOURCE), scene.topics.writes) == (before, 0)


def test_it_is_the_same_topic_under_the_name_of_a_profile_too(tmp_path: Path) -> None:
    scene = moving(tmp_path)
    app = scene.app()
    scene.app = lambda: replace(app, target_of=lambda _profile: app.target)  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="could not go on"):
        scene.plan(**wanted(SWAP, target=f"{SOURCE}@alias"))


@pytest.mark.parametrize("renames", [{"b": "e"}, {}])
def test_a_new_name_in_the_same_topic_is_none_that_is_read(tmp_path: Path, renames: dict[str, str]) -> None:
    scene = moving(tmp_path)
    plan = scene.plan(**wanted(renames))
    assert plan.tally.to_write() == (KEYS if renames else 0)
    if renames:
        assert scene.apply(plan).exit_code is ExitCode.OK
        assert verified(scene, plan) == ExitCode.OK


def verified(scene: Scene, plan: MigrationPlan) -> ExitCode:
    return verify_plan(scene.app(), plan, scene.engine()).exit_code


def exported(scene: Scene, folder: Path) -> str:
    """The first of the two steps."""
    folder.mkdir()
    file = folder / "offsets.ndjson"
    records = scene.topics.read(SOURCE, newest_per_key=True).records
    file.write_text("".join(f"{record_line(record)}\n" for record in records))
    return str(file)


@pytest.mark.parametrize("renames", [SWAP, CHAIN])
def test_in_two_steps_it_is_cut_off_anywhere_and_resumed_to_the_same_end(
    tmp_path: Path, renames: dict[str, str]
) -> None:
    names = {new: old for old, new in renames.items()}
    step = 0
    while True:
        scene = moving(tmp_path / str(step))
        plan = scene.plan(**wanted(renames, sources=(exported(scene, tmp_path / str(step)),)))
        calls = list[Call]()

        def cut_off(call: Call, calls: list[Call] = calls, at: int = step) -> None:
            calls.append(call)
            if len(calls) == at + 1:
                raise EosctlError("a broker went away")

        for each in ("kept", "record", "transaction"):
            scene.stages.before(each, cut_off)
        is_cut_off = scene.apply(plan).exit_code is not ExitCode.OK
        if is_cut_off:
            assert scene.apply(plan, resume=True).exit_code is ExitCode.OK, calls[step]
        found = scene.topics.newest(SOURCE)
        for name, number in ((name, number) for name in names for number in range(KEYS)):
            assert found[key(name, number)] == b'{"of":"%s"}' % names[name].encode()
        assert verified(scene, plan) == ExitCode.OK
        if not is_cut_off:
            break
        step += 1
    assert step > 2 * KEYS
