"""Log directories of brokers that failed or are nearly full. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eosctl.checks import codes
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.records import LogDir

NEARLY_FULL = 0.05
"""The share of a volume that is left: in proportion to it, so that a small one is not nearly full for ever."""


def log_dir_findings(log_dirs: Mapping[int, Sequence[LogDir]]) -> Iterator[Finding]:
    """Yield the directories that brokers took out of use, and those on volumes with little room left."""
    for broker, found in sorted(log_dirs.items()):
        for each in found:
            usable, total = each.usable_bytes, each.total_bytes
            if each.is_offline:
                yield _failed(broker, each)
            elif usable is not None and total is not None and usable < NEARLY_FULL * total:
                yield _nearly_full(broker, each.path, usable=usable, total=total)


def _failed(broker: int, log_dir: LogDir) -> Finding:
    return Finding(
        codes.LOG_DIR_FAILED, ERROR, f"broker {broker}",
        f"broker {broker} can't use its log directory {log_dir.path} (KAFKA_STORAGE_ERROR): the disk failed or is full",
        "See the broker's log, which `eosctl explain` reads. Free space on the disk or replace it, then restart the "
        "broker; delete no file in the directory by hand.",
        {"broker": broker, "log_dir": log_dir.path},
    )  # fmt: skip


def _nearly_full(broker: int, path: str, *, usable: int, total: int) -> Finding:
    return Finding(
        codes.LOG_DIR_NEARLY_FULL, WARNING, f"broker {broker}",
        f"the disk of log directory {path} of broker {broker} has {_size(usable)} of {_size(total)} left "
        f"({100 * usable / total:.1f} percent): a broker stops using a directory that it can't write to, and ends when "
        "it has no other",
        "Free space on the disk (delete no file in the directory by hand), move replicas to other brokers "
        "(kafka-reassign-partitions.sh), or lower retention.ms or retention.bytes of large topics.",
        {"broker": broker, "log_dir": path, "usable_bytes": usable, "total_bytes": total},
    )  # fmt: skip


def _size(count: int) -> str:
    """Format bytes in the largest binary unit that fits: `1.5 GiB`."""
    units = [(4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")]
    return next((f"{count / 1024**power:,.1f} {unit}" for power, unit in units if count >= 1024**power), f"{count} B")
