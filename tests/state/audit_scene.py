"""What the tests of the audit log write, and what they read there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FENCE = ("fence", "g-orders-0")
CLUSTER = "fake-cluster-id"


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
