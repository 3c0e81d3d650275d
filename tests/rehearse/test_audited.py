"""What a rehearsal takes from an audit: its verdict, and everything that it could not look at."""

from __future__ import annotations

import pytest

from eosctl.errors import UnauthorizedError
from eosctl.rehearse.proof import FaultAudit, FaultAuditRequest, audit_connector
from eosctl.rehearse.rows import AuditedWindow, FaultVerdict
from tests.audit.log_scene import LogScene
from tests.fakes.world import OFFSETS


def audited(scene: LogScene) -> FaultAudit:
    app = scene.app(connect_urls=("http://w0:8083",), offset_topic=OFFSETS)
    window = AuditedWindow(since_ms=0, until_ms=app.clock.now_ms())
    return audit_connector(app, FaultAuditRequest("c", window, None, None))


def honest() -> LogScene:
    scene = LogScene()
    task = scene.task()
    for _ in range(3):
        task.commit(b"a", b"b")
    return scene


def test_an_honest_connector_is_exactly_once() -> None:
    said = audited(honest())
    assert (said.verdict, said.lacks, said.delivered) == (FaultVerdict.EXACTLY_ONCE, (), 6)


def test_the_problems_of_the_audit_count() -> None:
    """They used to be dropped: who wrote could not be asked, and the row was exactly_once."""
    scene = honest()
    scene.brokers.calls.fail_always("list_transactions", UnauthorizedError("not allowed to DESCRIBE the cluster"))
    said = audited(scene)
    assert said.verdict is FaultVerdict.UNPROVEN
    assert "not allowed to DESCRIBE the cluster" in said.why
    assert said.lacks


def test_what_was_not_seen_is_said_beside_findings() -> None:
    scene = honest()
    scene.plain("out", b"k", b"v")
    scene.brokers.calls.fail_always("list_transactions", UnauthorizedError("not allowed to DESCRIBE the cluster"))
    said = audited(scene)
    assert said.verdict is FaultVerdict.NOT_EXACTLY_ONCE
    assert any("not allowed to DESCRIBE the cluster" in each for each in said.lacks)


def test_ctrl_c_in_an_audit_ends_the_rehearsal() -> None:
    """The audit ends by itself with what it read: the rehearsal used to go on with the next fault."""
    scene = honest()
    scene.batches.fail_next("batch", KeyboardInterrupt(), skip=2)
    with pytest.raises(KeyboardInterrupt):
        audited(scene)
