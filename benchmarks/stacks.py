"""What a benchmark runs on: a folder that goes with it, and brokers and workers that are stopped with it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

BROKER = StackSpec(groups=())


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder, remove it at the end of the block; what eosctl keeps, its audit log too, goes there meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        yield folder


@contextmanager
def stack_in(folder: Path, spec: StackSpec = BROKER) -> Iterator[Stack]:
    """Start brokers and workers below `folder`; stop them at the end of the block."""
    stack = Stack.up(spec, folder / "stack", name="benchmark", environ=os.environ)
    try:
        yield stack
    finally:
        stack.down()
