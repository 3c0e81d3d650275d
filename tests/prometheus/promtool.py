"""The type of the fixture `promtool`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Promtool = Callable[..., "subprocess.CompletedProcess[str]"]
