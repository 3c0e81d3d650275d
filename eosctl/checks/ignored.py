"""Findings that a person has accepted: `CODE` everywhere, `CODE:SUBJECT` in one place. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from eosctl.core.findings import Finding
from eosctl.core.wording import did_you_mean
from eosctl.errors import UsageError
from eosctl.target import Target


class IgnoredFinding(Struct, frozen=True):
    """Findings that are counted and no more; `subject` None means those of every subject."""

    code: str
    subject: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Check whether it covers the finding; a finding with several subjects must be covered in all of them."""
        several = finding.evidence.get("subjects")
        subjects = set(several) if isinstance(several, list) else {finding.subject}
        return self.code == finding.code and (self.subject is None or subjects == {self.subject})


def parse_ignored(texts: Iterable[str], known_codes: Collection[str], *, origin: str) -> list[IgnoredFinding]:
    """Parse texts `CODE` or `CODE:SUBJECT`. Raises UsageError, naming `origin`, for a code that no finding has."""
    found = []
    for text in texts:
        code, colon, subject = text.partition(":")
        if code not in known_codes:
            hint = did_you_mean(code, known_codes, most=3, otherwise="See all codes: eosctl explain")
            raise UsageError(f"{origin}: no finding has the code {code!r}", hint=hint)
        if colon and not subject:
            raise UsageError(f"{origin}: {text!r} names no subject", hint=f"Write CODE:SUBJECT, or {code} alone.")
        found.append(IgnoredFinding(code, subject if colon else None))
    return found


def to_ignore(target: Target, given: Sequence[str], known_codes: Collection[str]) -> list[IgnoredFinding]:
    """Return what the command line and the profile ignore; raises UsageError as `parse_ignored`."""
    of_profile = parse_ignored(target.ignore, known_codes, origin=f"profile {target.profile}: ignore")
    return [*parse_ignored(given, known_codes, origin="--ignore"), *of_profile]


def split_ignored(
    findings: Iterable[Finding], ignored: Sequence[IgnoredFinding]
) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """Split the findings into those that count and those that are ignored."""
    counting: list[Finding] = []
    accepted: list[Finding] = []
    for each in findings:
        (accepted if any(one.covers(each) for one in ignored) else counting).append(each)
    return counting, accepted
