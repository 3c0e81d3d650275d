"""Many findings of one kind as one: what is alike, and what is lost of it."""

from __future__ import annotations

from msgspec.structs import replace

from eosctl.checks.codes import FEW_REPLICAS
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.offsets.codes import KEY_NULL
from eosctl.fence.codes import FENCING_SLOW
from eosctl.group.codes import WORKER_UNREACHABLE
from eosctl.observation.connectors.codes import NOTHING_COMMITTED
from eosctl.observation.connectors.commit_age import fold_alike, under_cause
from eosctl.task_counts.codes import ORPHAN


def junk(place: str, *, topic: str = "t", fix: str = "Delete it.") -> Finding:
    return Finding(KEY_NULL, ERROR, place, "a record without a key", fix, {"topic": topic})


def test_three_alike_stay_three() -> None:
    three = [junk("t-0"), junk("t-1"), junk("t-2")]
    assert fold_alike(three) == three


def test_more_are_one_for_each_topic_in_the_order_in_which_they_came() -> None:
    many = [junk(f"{topic}-{number}", topic=topic) for number in range(40) for topic in ("u", "t")]
    first, second = fold_alike(many)
    assert (first.subject, second.subject) == ("u", "t")
    assert first.message == (
        "40 times: u-0: a record without a key; u-1: a record without a key; u-2: a record without a key; and 37 more"
    )
    assert (first.code, first.severity, first.fix) == ("key_null", ERROR, "Delete it.")
    assert first.evidence["subjects"] == [f"u-{number}" for number in range(40)]
    assert first.evidence["examples"] == [{"topic": "u"}] * 3


def test_without_a_topic_places_are_counted() -> None:
    [one] = fold_alike(
        Finding(NOTHING_COMMITTED, ERROR, f"c/{task}", f"c/{task} is quiet", "Look.") for task in range(4)
    )
    assert (one.subject, one.message) == (
        "4 places",
        "4 places: c/0 is quiet; c/1 is quiet; c/2 is quiet; and 1 more",
    )


def few_replicas(topic: str, replicas: int = 1) -> Finding:
    return Finding(FEW_REPLICAS, WARNING, topic, f"topic {topic} has {replicas}", "Raise.", {"replicas": replicas})


def test_two_topics_with_too_few_replicas_are_one_finding_with_both_names() -> None:
    """A cluster of one broker had three rows, which said the same."""
    [one] = fold_alike([few_replicas("configs"), few_replicas("offsets", 2)])
    assert (one.code, one.severity, one.subject, one.fix) == ("few_replicas", WARNING, "2 topics", "Raise.")
    assert one.message.endswith(": configs, offsets")
    assert one.evidence == {
        "count": 2,
        "subjects": ["configs", "offsets"],
        "examples": [{"replicas": 1}, {"replicas": 2}],
    }
    assert fold_alike([few_replicas("configs")]) == [few_replicas("configs")]
    assert fold_alike([one, few_replicas("status")])[0] == one, "what stands for many already stays"


def test_deleted_connectors_are_one_short_line() -> None:
    """Each was an info row for ever; folded they were one of 300 characters, which told three whole sentences."""
    records = [Finding(ORPHAN, INFO, f"gone-{number}", "it was deleted", "Nothing to do.") for number in range(13)]
    [one] = fold_alike(records)
    assert (one.subject, one.evidence["count"]) == ("13 deleted connectors", 13)
    assert one.message.count("gone-") == 10
    assert one.message.endswith(" and 3 more")


def test_what_is_mended_one_by_one_stays() -> None:
    each = [junk("t-0", fix=f"`eosctl txn abort --start-offset {number}`") for number in range(9)]
    assert fold_alike(each) == each


def slow(name: str) -> Finding:
    return Finding(FENCING_SLOW, ERROR, name, f"{name} is slow", f"`eosctl connectors restart --failed {name}`")


def test_remedies_that_differ_by_their_subject_alone_are_one_where_they_are_many() -> None:
    """Five hundred connectors were five hundred rows."""
    [one] = fold_alike(slow(f"c-{number}") for number in range(11))
    assert (one.subject, one.evidence["count"]) == ("11 places", 11)
    assert one.message == "11 places: c-0 is slow; c-1 is slow; c-2 is slow; and 8 more"
    assert one.fix == "For each of them, as for c-0: `eosctl connectors restart --failed c-0`"
    ten = [slow(f"c-{number}") for number in range(10)]
    assert fold_alike(ten) == ten


def test_tasks_differ_by_their_connector() -> None:
    tasks = [replace(slow(f"c-{number}"), subject=f"c-{number}/7") for number in range(11)]
    assert [each.evidence["count"] for each in fold_alike(tasks)] == [11]


def test_what_stands_for_many_already_is_not_folded_again() -> None:
    places = [junk(f"t-{number}", topic=f"t-{topic}") for topic in range(11) for number in range(4)]
    assert [each.evidence["count"] for each in fold_alike(places)] == [4] * 11


def test_what_follows_stands_below_its_cause() -> None:
    cause = Finding(WORKER_UNREACHABLE, ERROR, "w", "refused", "Start it.", {"since": 1})
    assert under_cause(cause, [junk("t-0")]).evidence == {
        "since": 1,
        "follows": [{"code": "key_null", "subject": "t-0", "message": "a record without a key"}],
    }
