"""The metrics as text, by prometheus_client: Prometheus' own format, or OpenMetrics on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from eosctl.collect.overview import Overview
from eosctl.exporter.metrics import METRICS, Metric
from eosctl.exporter.samples import Sample, Samples

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

DEFAULT_TOP = 50


class OverviewCollector:
    """A registry for prometheus_client: each `collect` is one overview."""

    def __init__(self, overview: Callable[[], Overview], *, top: int = DEFAULT_TOP, once: bool = False) -> None:
        self._overview, self._top = overview, top
        self._metrics = [each for each in METRICS if not (once and each.over_time)]

    def collect(self) -> Iterator[Family]:
        """Yield one family per metric that has a sample."""
        overview = self._overview()
        yield _build_info()
        for metric in self._metrics:
            family = _family(metric)
            for labels, value in _each_once(metric.read(overview, self._top)):
                values = map(_label_value, labels)
                family.add_sample(metric.name, dict(zip(metric.labels, values, strict=True)), value)
            if family.samples:
                yield family


def expose(
    overview: Callable[[], Overview], accept: str, *, top: int = DEFAULT_TOP, once: bool = False
) -> tuple[bytes, str]:
    """Return the document in the format of `accept` (the HTTP header), and its content type; `once`: of one look."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode(OverviewCollector(overview, top=top, once=once)), content_type


def _each_once(samples: Samples) -> Iterable[Sample]:
    """Return one sample per set of labels, the greatest: a connector may be called `other`, too."""
    found: dict[tuple[str, ...], float] = {}
    for labels, value in samples:
        found[tuple(labels)] = max(value, found.get(tuple(labels), value))
    return found.items()


def _label_value(text: str) -> str:
    """Escape what UTF-8 has no bytes for: any client may write half of a surrogate pair into a key."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _family(metric: Metric) -> Family:
    from prometheus_client.core import Metric as Family

    suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
    return Family(metric.name.removesuffix(suffix), metric.help, metric.type, metric.unit)


def _build_info() -> Family:
    from importlib.metadata import version

    from prometheus_client.core import InfoMetricFamily

    return InfoMetricFamily("eosctl_build", "The version of eosctl.", {"version": version("eosctl")})
