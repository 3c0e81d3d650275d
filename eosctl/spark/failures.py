"""What went wrong inside Spark, in one line: stack traces of two languages never reach the user."""

from __future__ import annotations

import re
from pathlib import Path

from eosctl.errors import EosctlError

_EXCEPTION_LINE = re.compile(r"^(?:Caused by: )?([\w.]*(?:Error|Exception)\b.*)$", re.MULTILINE)
_WRAPPERS = ("org.apache.spark", "java.", "py4j.", "pyspark.")


def spark_error(error: Exception, doing: str, *, log_file: Path | None = None) -> EosctlError:
    """The eosctl error for a failure inside Spark: the innermost line that is not about Spark itself."""
    text = str(error)
    lines: list[str] = _EXCEPTION_LINE.findall(text)
    ours = [line for line in lines if not line.startswith(_WRAPPERS)]
    cause = (ours or lines or [text.strip().partition("\n")[0] or type(error).__name__])[-1]
    where = str(log_file) if log_file else "spark.log beside the snapshot folder"
    return EosctlError(f"{doing} failed in Spark: {cause}", hint=f"The whole story is in {where}.")
