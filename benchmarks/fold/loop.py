"""What a script of one's own does with a dumped config topic: the newest value per key, and no more.

It knows nothing of the order of records, incomplete task sets or wrong types, so its answer may be another one.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Prints one line per task-count record."""
    newest = {}
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            newest[record["key"]] = None if record["value"] is None else json.loads(record["value"])
    for key, value in newest.items():
        if key.startswith("tasks-fencing-") and value is not None:
            print(key, value["task-count"])


if __name__ == "__main__":
    main()
