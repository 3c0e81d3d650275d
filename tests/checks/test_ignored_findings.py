"""Which findings `CODE` and `CODE:SUBJECT` cover."""

from __future__ import annotations

import time

import pytest

from eosctl.checks.codes import FEW_REPLICAS
from eosctl.checks.ignored import IgnoredFinding, parse_ignored, split_ignored
from eosctl.codes import Code
from eosctl.core.findings import WARNING, Finding
from eosctl.observation.connectors.commit_age import fold_alike

CODES = ("few_replicas", "worker_unreachable")


def finding(subject: str, code: Code = FEW_REPLICAS) -> Finding:
    return Finding(code, WARNING, subject, f"{subject} is so", "Mend it.")


def test_a_subject_may_have_colons_of_its_own() -> None:
    texts = ["few_replicas", "worker_unreachable:http://w1:8083"]
    assert parse_ignored(texts, CODES, origin="--ignore") == [
        IgnoredFinding(FEW_REPLICAS), IgnoredFinding("worker_unreachable", "http://w1:8083"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ([], ["a", "b"]),
        ([IgnoredFinding(FEW_REPLICAS)], []),
        ([IgnoredFinding(FEW_REPLICAS, "a")], ["b"]),
        ([IgnoredFinding(FEW_REPLICAS, "")], ["a", "b"]),
        ([IgnoredFinding("worker_unreachable")], ["a", "b"]),
        ([IgnoredFinding(FEW_REPLICAS, "a"), IgnoredFinding(FEW_REPLICAS, "b")], []),
    ],
)
def test_what_is_left(ignored: list[IgnoredFinding], left: list[str]) -> None:
    counting, accepted = split_ignored([finding("a"), finding("b")], ignored)
    assert [each.subject for each in counting] == left
    assert {each.subject for each in accepted} == {"a", "b"} - set(left)


def test_findings_are_compared_with_what_is_ignored_and_not_with_each_other() -> None:
    """Each was looked for among all that were accepted: 20,000 findings took minutes."""
    found = [finding(str(number)) for number in range(20_000)]
    began_s = time.process_time()
    counting, accepted = split_ignored(found, [IgnoredFinding(FEW_REPLICAS)])
    assert (counting, len(accepted)) == ([], 20_000)
    assert time.process_time() - began_s < 5, "of the CPU alone: a busy machine does not count"


def test_one_that_stands_for_many_is_covered_where_all_of_them_are() -> None:
    [many] = fold_alike(finding(subject) for subject in "abcd")
    [same] = fold_alike(Finding(FEW_REPLICAS, WARNING, "a", f"{n} is so", "Mend it.") for n in range(4))
    assert (IgnoredFinding(FEW_REPLICAS).covers(many), IgnoredFinding(FEW_REPLICAS, "a").covers(many)) == (
        True,
        False,
    )
    assert IgnoredFinding(FEW_REPLICAS, "a").covers(same)
