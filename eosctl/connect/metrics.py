"""Metrics of source tasks over HTTP: from a Prometheus endpoint (such as jmx_exporter's) or a Jolokia agent.

It sends no credentials, follows no redirect, and decides nothing about what the numbers mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import urllib3
from msgspec import Struct

from eosctl.connect.pools import make_rest_context, open_pool, resolve_url
from eosctl.connect.sender import CONNECT_TIMEOUT_S, reason_of
from eosctl.core.kept.plan_file import json_of
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.metrics import MBEANS, SIZES, TaskMetrics, attribute_of, metrics_of_mbeans, metrics_of_samples
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, UnauthorizedError, UnreachableError
from eosctl.machine.answers import LARGEST_ANSWER_BYTES, AnswerTooLargeError, EncodedAnswerError, read_answer

_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_PROMETHEUS_TEXT = "text/plain; version=0.0.4"
_NO_CREDENTIALS = "eosctl sends no credentials to metrics endpoints: allow this host to read without, or use a proxy."


class MetricsClient(Struct, frozen=True):
    """A client of metrics endpoints, one request at a time; it uses only the CA certificates of `access`."""

    deadline: Deadline
    access: ConnectAccess

    def read_prometheus(self, url: str) -> list[TaskMetrics]:
        """Read the metrics of source tasks from the text that a Prometheus would scrape at `url`.

        Raises UnreachableError, UnauthorizedError, and ConnectError for an answer of another form.
        """
        body = self._exchange("GET", url, headers={"Accept": _PROMETHEUS_TEXT})
        try:
            return metrics_of_samples(_samples(body.decode("utf-8")))
        except (ValueError, ArithmeticError, LookupError) as exc:  # whatever its parser has for numbers and cut lines
            raise _unreadable(url, "Prometheus text", str(exc)[:200]) from exc

    def read_jolokia(self, url: str) -> list[TaskMetrics]:
        """Read the metrics of source tasks from the Jolokia agent at `url` (`http://HOST:8778/jolokia`).

        Raises as `read_prometheus`.
        """
        request = json.dumps({"type": "read", "mbean": MBEANS}).encode("ascii")
        body = self._exchange("POST", f"{url}/", body=request, headers={"Content-Type": "application/json"})
        try:
            answer = json_of(body)
        except ValueError as exc:
            raise _unreadable(url, "Jolokia's JSON", str(exc)[:200]) from exc
        if not isinstance(answer, Mapping) or not isinstance(answer.get("status"), int):
            raise _unreadable(url, "Jolokia's JSON", "it has no status")
        if answer["status"] == HTTPStatus.NOT_FOUND and "InstanceNotFound" in str(answer.get("error_type")):
            return []  # a worker without source tasks has no such MBean
        if answer["status"] != HTTPStatus.OK or not isinstance(answer.get("value"), Mapping):
            raise _refused(url, answer["status"], str(answer.get("error", "no value"))[:200])
        return metrics_of_mbeans(answer["value"])

    def _exchange(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
        self.deadline.check(f"waiting for {url}")
        context = make_rest_context(self.access, with_certificate=False) if url.startswith("https:") else None
        proxy = self.access.proxies.of(url)
        with open_pool(proxy, clock=self.deadline.clock, context=context) as pool:
            try:
                resolve_url(url, proxy, self.deadline)
                left_s = self.deadline.remaining_s()
                response = pool.request(
                    method, url, body=body, headers={**headers, "Connection": "close", "User-Agent": "eosctl"},
                    timeout=urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, left_s), total=left_s),
                    redirect=False, preload_content=False,
                )  # fmt: skip
                data = read_answer(response)
            except AnswerTooLargeError as exc:
                raise _unreadable(url, "metrics", f"more than {LARGEST_ANSWER_BYTES} bytes") from exc
            except EncodedAnswerError as exc:
                raise _unreadable(url, "metrics", f"they are encoded ({exc})") from exc
            except (urllib3.exceptions.HTTPError, OSError) as exc:
                hint = "Check the URL, and that the exporter or agent listens there."
                raise UnreachableError(f"{url} can't be reached: {reason_of(exc)}", hint=hint) from exc
        if response.status != HTTPStatus.OK:
            raise _refused(url, response.status, "")
        return data


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield the samples of source tasks. Only their lines are parsed, which are few among a worker's metrics."""
    from prometheus_client.parser import text_string_to_metric_families

    lines = text.replace("\r\n", "\n").split("\n")
    if text.strip() and not any(line.startswith("#") or _NAME.match(line) for line in lines):
        raise ValueError("no line of it is a sample or a comment")
    wanted = [line for line in lines if (name := _NAME.match(line)) and attribute_of(name[0])]
    for family in text_string_to_metric_families("\n".join(wanted)):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _refused(url: str, status: int, reason: str) -> EosctlError:
    answer = f"{url} answered {status}{f' ({reason})' if reason else ''}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return UnauthorizedError(f"not allowed: {answer}", hint=_NO_CREDENTIALS)
    return ConnectError(answer, hint="Is the path right? jmx_exporter has /metrics, Jolokia's agent /jolokia.")


def _unreadable(url: str, what: str, reason: str) -> ConnectError:
    return ConnectError(
        f"{url} does not answer with {what}: {reason}",
        hint=f"--prometheus takes a page of {SIZES[0]} and such, --jolokia the address of a Jolokia agent.",
    )
