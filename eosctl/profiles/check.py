"""The operation `eosctl profile check`: connects to what a profile names, and compares the answers to expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, ExitCode
from eosctl.profiles.rows import PROFILE_CHECK, Check, CheckRow, CheckStatus, ProfileCheckSummary
from eosctl.report import Problem, Report

_Found = Callable[[], tuple[str, str | None]]
"""A check: returns the answer, and what is wrong with it."""


def check_target(app: App) -> Report:
    """Report one row per cluster, group and worker: ok, wrong, or failed with the reason.

    Exit with 3 if an answer differs from the expected one; else, if nothing answers, with the first failure's exit
    code, and with 7 if some do.
    """
    rows: list[CheckRow] = []
    failures: list[EosctlError] = []
    for name, subject, ask in _questions(app):
        try:
            found, wrong = ask()
            status: CheckStatus = "wrong" if wrong else "ok"
            rows.append(CheckRow(check=name, subject=subject, status=status, found=found, reason=wrong))
        except EosctlError as exc:
            failures.append(exc)
            rows.append(CheckRow(check=name, subject=subject, status="failed", found=None, reason=exc.message))
    counts = {status: sum(row.status == status for row in rows) for status in ("ok", "wrong", "failed")}
    if counts["wrong"]:
        code = ExitCode.FINDINGS
    elif failures:
        code = ExitCode.PARTIAL if counts["ok"] else failures[0].exit_code
    else:
        code = ExitCode.OK
    cluster = next((row.found for row in rows if row.check == "kafka"), None)
    target = {"kafka_cluster_id": cluster, "group_id": app.target.group_id}
    problems = [Problem.of(failure) for failure in failures]
    summary = ProfileCheckSummary(counts=counts)
    return Report(PROFILE_CHECK, rows, summary, target=target, problems=problems, exit_code=code)


def _questions(app: App) -> Iterator[tuple[Check, str, _Found]]:
    target = app.target
    yield "kafka", ",".join(target.require_client().bootstrap_servers), lambda: _kafka(app)
    if target.group_id is not None or "group_id" in target.expect:
        yield "group", str(target.group_id), lambda: _group(app)
    for url in target.connect_urls:
        yield "worker", url, lambda url=url: _worker(app, url)  # type: ignore[misc]  # a default binds it now


def _kafka(app: App) -> tuple[str, str | None]:
    with app.transactions() as admin:
        return _compare(admin.cluster_id(), app.target.expect.get("kafka_cluster_id"))


def _group(app: App) -> tuple[str, str | None]:
    group_id, expected = app.target.group_id, app.target.expect.get("group_id")
    if group_id != expected and expected is not None:
        return str(group_id), f"expected {expected}"
    with app.transactions() as admin:
        group = admin.describe_group(app.target.require_group_id())
    return f"{group.state}, {counted(len(group.members), 'member')}", None


def _worker(app: App, url: str) -> tuple[str, str | None]:
    root = app.worker(url).root()
    _cluster_id, wrong = _compare(root["kafka_cluster_id"], app.target.expect.get("kafka_cluster_id"))
    return f"version {root['version']}, Kafka cluster {root['kafka_cluster_id']}", wrong


def _compare(found: str, expected: str | None) -> tuple[str, str | None]:
    return found, None if expected in (None, found) else f"expected {expected}"
