"""Arrow without pandas, where pandas is installed."""

from __future__ import annotations

import subprocess
import sys

_PROBE = """
import sys
import eosctl.engine.columns, eosctl.engine.read, eosctl.engine.rule
print("pandas" in sys.modules)
import pandas, pyarrow
table = pyarrow.Table.from_pandas(pandas.DataFrame({"key": ["a", None]}))
print(table.to_pandas()["key"].isna().tolist(), pyarrow.array(pandas.Series([1.0, None])).to_pylist())
"""


def test_pandas_is_not_loaded_and_can_be_later() -> None:
    """pyarrow loads it with its first array: 0.4 s and 40 MiB for each process, for nothing."""
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "[False, True] [1.0, None]"]
