"""How tests start a Spark of their own: with the Java that is found, and the classes that eosctl keeps of it.

Without them a start costs three times as much, and few tests are about the start.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from eosctl.machine.java import require_java, spark_java_home
from eosctl.migrate.spark.session import SessionSettings
from eosctl.sandbox.downloads.jars import cache_dir


def quick_settings(folder: Path, **more: Any) -> SessionSettings:
    """All that Spark writes goes to `folder`; `more` is of SessionSettings."""
    cache = cache_dir(os.environ) / "spark"
    java_home = spark_java_home(require_java(os.environ), cache)
    return SessionSettings(folder, folder / "spark.log", java_home=java_home, cache=cache, **more)
