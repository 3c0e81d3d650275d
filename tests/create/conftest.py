"""A cluster where connectors are created, and eosctl there."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from tests.conftest import Invoke, Outcome
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.placing import PlaceWorld

Run = Callable[..., Outcome]


@pytest.fixture
def world() -> PlaceWorld:
    return PlaceWorld()


@pytest.fixture
def app(world: PlaceWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)


@pytest.fixture
def run(invoke: Invoke, world: PlaceWorld) -> Run:
    """`eosctl connectors …` in the world, for JSON."""

    def command(verb: str, *args: str, **how: Any) -> Outcome:
        return invoke("connectors", verb, *args, *world.flags, "-o", "json", **{**world.surroundings, **how})

    return command


@pytest.fixture
def create(run: Run) -> Run:
    return partial(run, "create")


@pytest.fixture
def definition(tmp_path: Path) -> Callable[..., str]:
    """A file with a connector `c` that reads the file `f`; _ stands for the dots of a setting."""

    def make(name: str = "c", file: str = "f", **config: str) -> str:
        path = tmp_path / f"{name}.json"
        changes = {key.replace("_", "."): value for key, value in config.items()}
        config = {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": file, "topic": f"t-{name}", **changes}
        path.write_text(json.dumps({"name": name, "config": config}), encoding="utf-8")
        return str(path)

    return make


@pytest.fixture
def offsets(tmp_path: Path) -> Callable[..., str]:
    """A file with the offset of a connector behind so many lines of `f`, as GET answers it."""

    def make(number: int, file: str = "f") -> str:
        path = tmp_path / "offsets.json"
        body = {"offsets": [{"partition": {"filename": file}, "offset": {"position": number}}]}
        path.write_text(json.dumps(body), encoding="utf-8")
        return str(path)

    return make
