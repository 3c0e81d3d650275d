"""Two Connect groups on one Kafka, and a third of the same name as the first on a Kafka of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eosctl.sandbox.settings import DEFAULT_GROUP, GroupSpec, StackSpec
from tests.move.live.ground import Moved, Scene, Side
from tests.sandbox_fixtures import rest, sandbox

BESIDE = "beside"


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Side]]:
    """The sides `here` and `beside` of one Kafka, and `away`, of another one."""
    groups = (GroupSpec(), GroupSpec(BESIDE))
    with (
        sandbox(StackSpec(groups=groups), tmp_path_factory, name="here") as here,
        sandbox(StackSpec(), tmp_path_factory, name="away") as away,
    ):
        sides = (
            Side("here", here, DEFAULT_GROUP),
            Side("beside", here, BESIDE),
            Side("away", away, DEFAULT_GROUP),
        )
        yield {side.profile: side for side in sides}


@pytest.fixture
def scene(neighbours: dict[str, Side], tmp_path: Path) -> Scene:
    """The sides, and a state directory and profiles of the test's own."""
    made = Scene(neighbours, tmp_path)
    made.write_profiles()
    return made


@pytest.fixture
def connector(scene: Scene, unique: str) -> Iterator[Callable[..., Moved]]:
    """`connector("a", **config)` runs, here or `on` another side; it is deleted after the test, under every name."""
    made: list[Moved] = []

    def create(mark: str = "", *, on: str = "here", **config: str) -> Moved:
        name = f"{unique}{mark}"
        path = scene.folder / f"{name}.txt"
        path.touch()
        moved = Moved(name, path, f"topic-{name}")
        moved.on(scene.sides[on]).put(**config)
        made.append(moved)
        return moved

    yield create
    for side in scene.sides.values():
        for name in side.names():
            if any(name.startswith(each.name) for each in made):
                rest(f"{side.url}/connectors/{name}", "DELETE")
