"""Folds many findings of one kind into one, and findings under their common cause, so that `doctor` is readable.

Programs lose nothing: a folded finding has the subjects of all, a cause has the findings that follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from eosctl.core.findings import Finding
from eosctl.foreign import shell_word

MOST_ACTS = 10
"""The largest number of remedies, different in their subject alone, that are shown separately."""
MOST_ALIKE = 3
"""The largest number of similar findings that are shown separately; of more, as many are examples."""
_MOST_NAMED = 10
_BY_NAME = {
    "few_replicas": ("topics", "have too few replicas: a lost broker may lose them"),
    "orphan": ("deleted connectors", "have a task-count record, which Connect keeps"),
}
"""Codes of which even two findings are folded, as only the names differ."""


def fold_alike(findings: Iterable[Finding]) -> list[Finding]:
    """Replace more than MOST_ALIKE findings with the same code, topic and remedy by one, with a count and examples.

    Findings with different remedies need an action each, so each stays; but more than MOST_ACTS that differ by their
    subject alone become one, with the first as an example. Some codes are folded to a list of names.
    """
    by_name = _fold(findings, _act_by_name, 1, _named)
    same_act = _fold(by_name, _act, MOST_ALIKE, _folded)
    return _fold(same_act, _kind_of_act, MOST_ACTS, _acts)


def _fold(
    findings: Iterable[Finding], key: Callable[[Finding], object], most: int, one: Callable[[list[Finding]], Finding]
) -> list[Finding]:
    """Replace more than `most` findings with the same key by `one`, at the place of the first."""
    alike: dict[object, list[Finding]] = {}
    for each in findings:
        alike.setdefault(key(each), []).append(each)
    return [left for same in alike.values() for left in (same if len(same) <= most else [one(same)])]


def _act_by_name(each: Finding) -> object:
    """Return code, severity and remedy as the key of a finding that is folded by name; any other key is unique."""
    return (each.code, each.severity, each.fix) if each.code in _BY_NAME and "count" not in each.evidence else id(each)


def _named(same: list[Finding]) -> Finding:
    subjects = list(dict.fromkeys(each.subject for each in same))
    noun, what = _BY_NAME[same[0].code]
    more = f" and {len(subjects) - _MOST_NAMED:,} more" if len(subjects) > _MOST_NAMED else ""
    shared = f"{len(subjects):,} {noun}"
    message = f"{shared} {what}: {', '.join(subjects[:_MOST_NAMED])}{more}"
    return replace(same[0], subject=shared, message=message, evidence=_evidence(same, subjects))


def _evidence(same: Sequence[Finding], subjects: Sequence[str]) -> dict[str, object]:
    examples = [dict(each.evidence) for each in same[:MOST_ALIKE]]
    return {"count": len(same), "subjects": list(subjects), "examples": examples}


def _act(each: Finding) -> object:
    return each.code, each.severity, each.certain, each.fix, each.evidence.get("topic")


def _kind_of_act(each: Finding) -> object:
    """Return the remedy without the subject, or a task's connector, as part of the key; keep folded findings apart."""
    alone = each.subject if "count" in each.evidence else None
    names = [re.escape(name) for name in (each.subject, each.subject.rpartition("/")[0]) if name]
    fix = re.sub(rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])", "{}", each.fix) if names else each.fix
    return each.code, each.severity, each.certain, fix, alone


def _acts(same: Sequence[Finding]) -> Finding:
    return replace(_folded(same), fix=f"For each of them, as for {shell_word(same[0].subject)}: " + same[0].fix)


def _folded(same: Sequence[Finding]) -> Finding:
    first, examples = same[0], same[:MOST_ALIKE]
    subjects = list(dict.fromkeys(each.subject for each in same))
    topic = first.evidence.get("topic")
    shared = subjects[0] if len(subjects) == 1 else str(topic) if topic else f"{len(subjects):,} places"
    texts = (each.message if each.subject in each.message else f"{each.subject}: {each.message}" for each in examples)
    count = shared if len(subjects) == len(same) and not topic else f"{len(same):,} times"
    message = f"{count}: {'; '.join(texts)}; and {len(same) - MOST_ALIKE:,} more"
    return replace(first, subject=shared, message=message, evidence=_evidence(same, subjects))


def under_cause(cause: Finding, following: Iterable[Finding]) -> Finding:
    """Add the findings that follow from a cause to its evidence."""
    follows = [{"code": str(each.code), "subject": each.subject, "message": each.message} for each in following]
    return replace(cause, evidence={**cause.evidence, "follows": follows})
