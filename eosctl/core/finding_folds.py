"""Many findings of one kind as one, and what follows from a cause below it: what `doctor` does so that it can be read.

Nothing is lost to a program: the one that stands for many has the subjects of all, a cause what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eosctl.core.findings import Finding

MOST_ALIKE = 3
"""So many findings alike are shown each for itself; of more than that, as many are examples."""


def fold_alike(findings: Iterable[Finding]) -> list[Finding]:
    """One finding in place of more than MOST_ALIKE with the same code, topic and remedy, with a count and examples.

    Where the remedies differ each is an act of its own, and each stays.
    """
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        key = (each.code, each.severity, each.certain, each.fix, each.evidence.get("topic"))
        alike.setdefault(key, []).append(each)
    return [one for same in alike.values() for one in (same if len(same) <= MOST_ALIKE else [_folded(same)])]


def _folded(same: Sequence[Finding]) -> Finding:
    first, examples = same[0], same[:MOST_ALIKE]
    subjects = list(dict.fromkeys(each.subject for each in same))
    topic = first.evidence.get("topic")
    shared = subjects[0] if len(subjects) == 1 else str(topic) if topic else f"{len(subjects):,} places"
    texts = (each.message if each.subject in each.message else f"{each.subject}: {each.message}" for each in examples)
    return replace(
        first,
        subject=shared,
        message=f"{len(same):,} times, the first {MOST_ALIKE} are: {'; '.join(texts)}",
        evidence={
            "count": len(same),
            "subjects": subjects,
            "examples": [dict(each.evidence) for each in examples],
        },
    )


def under_cause(cause: Finding, following: Iterable[Finding]) -> Finding:
    """The cause, with what can't be known, or fails, because of it."""
    follows = [{"code": each.code, "subject": each.subject, "message": each.message} for each in following]
    return replace(cause, evidence={**cause.evidence, "follows": follows})
