"""The page of --report: of any report, whole, escaped, and without a reference to anything outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from eosctl.core.ids import Owner, TransactionalId
from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode
from eosctl.output.page import report_page
from eosctl.report import Report
from eosctl.txn.rows import TXN_DESCRIBE, DescribedRow
from eosctl.upgrade.rows import UPGRADE_VERIFY, VerifySummary
from tests.audit.test_page import NASTY, Page
from tests.conftest import Invoke
from tests.fakes.doctor_scene import cluster, doctor
from tests.fakes.rolling import world
from tests.upgrade.test_upgrade_apply_command import run


def _page(report: Report, asked: str = "eosctl upgrade verify --to enabled") -> Page:
    page = Page("\n".join(report_page(report, asked=asked, made_ms=1_700_000_000_000)))
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _attributes in page.elements}
    return page


def test_doctor_writes_what_it_found_and_did_not_see(invoke: Invoke, tmp_path: Path) -> None:
    there = cluster()
    there.connect.connectors["orders"].fail(trace=f"java.lang.RuntimeException: it broke {NASTY}")
    path = tmp_path / "doctor.html"
    outcome = doctor(invoke, there, "--strict", "--report", str(path))
    assert outcome.exit_code == 3
    text = path.read_text(encoding="utf-8")
    assert NASTY not in text
    page = Page(text)
    assert page.open == []
    assert {"findings", "task_failed", "eosctl doctor --strict"} <= {each.split(" --report")[0] for each in page.texts}
    assert "What was not seen" in page.texts
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"report: {path}" in outcome.stderr
    assert outcome.stdout == doctor(invoke, there, "--strict").stdout


def test_the_exit_code_and_the_document_are_those_without_a_page(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "verify.html"
    words = ("upgrade", "verify", "--to", "enabled", "-o", "json")
    for there, verdict in ((world(w1="enabled", w2="enabled"), "ok"), (world(w1="enabled", w2="disabled"), "findings")):
        plain, paged = (run(invoke, there, *words, *more) for more in ((), ("--report", str(path))))
        assert (plain.exit_code, plain.json()) == (paged.exit_code, paged.json())
        assert verdict in Page(path.read_text(encoding="utf-8")).texts


def test_a_short_cell_is_not_broken() -> None:
    """A long JSON in the next column broke `target` into `targe` and `t`."""
    owner = Owner(kind="other", connector=None, task=None, application=None)
    long = "id-" * 20
    row = DescribedRow(transactional_id=TransactionalId(long), state="Empty", owner=owner)
    page = _page(Report(kind=TXN_DESCRIBE, rows=[row]), "eosctl txn describe x")
    cells = [attributes.get("class") for tag, attributes in page.elements if tag == "td"]
    assert cells[0] is None
    assert set(cells[1:]) == {"fixed"}


def test_what_could_not_be_seen_is_in_the_page_and_no_ok() -> None:
    unseen = [{"what": "acls_not_checked", "subject": "orders", "why": f"denied {NASTY}", "would_show": "DESCRIBE"}]
    summary = VerifySummary(target_mode=Mode.ENABLED, workers=1, proven=1, gates=32, passed=32, findings=0)
    report = Report(kind=UPGRADE_VERIFY, summary=summary, data={"unseen": unseen}, exit_code=ExitCode.PARTIAL)
    page = _page(report)
    assert "not everything was done or seen" in page.texts
    assert any(NASTY in each and each.startswith("orders: denied") for each in page.texts)


def test_text_of_others_is_text() -> None:
    target = {"kafka_cluster_id": NASTY, "group_id": "g\x1b[31m\u202e"}
    page = _page(Report(kind=UPGRADE_VERIFY, target=target), asked=f"eosctl doctor --ignore '{NASTY}'")
    assert NASTY in page.texts
    assert not any("\x1b" in each or "\u202e" in each for each in page.texts)


@pytest.mark.parametrize("name", ["nosuch/page.html", "folder", "closed/page.html"])
def test_a_page_that_could_not_be_written_is_refused_before_the_work(invoke: Invoke, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").mkdir(mode=0o500)
    if name.startswith("closed") and os.geteuid() == 0:
        (tmp_path / "closed").rmdir()
        (tmp_path / "closed").write_text("a file")
    there = cluster()
    outcome = doctor(invoke, there, "--report", str(tmp_path / name))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "--report" in outcome.stderr
