"""Rows of `acls`: the needed rights, the cluster's ACLs beside them, and the added ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eosctl.acls.rules import RightVerdict
from eosctl.core.wording import counted
from eosctl.foreign import lines_of
from eosctl.output.cells import TOTAL, Brief, summary_lines
from eosctl.output.rows import Counts, FindingRow, Header, Kind, Printed, Schema, Text, UnseenParts
from eosctl.output.text import findings_text
from eosctl.report import Report


def _one_of(*words: str) -> Schema:
    return Schema({"enum": sorted(words)})


_Role = Annotated[
    str,
    _one_of(
        *("worker", "producer", "consumer", "admin", "application"),
        *("observer", "fencer", "offset-writer", "config-writer", "aborter", "acl-writer"),
    ),
]
_ResourceType = Annotated[str, _one_of("Cluster", "Group", "Topic", "TransactionalId")]
_PlannedAction = Annotated[str, _one_of("create", "keep")]
_Outcome = Annotated[str, _one_of("created", "failed", "kept", "unconfirmed")]


class RightRow(Printed):
    """A right that is needed."""

    role: Annotated[_Role, "Who needs the right."]
    principal: Annotated[str | None, "The principal in this role; null where none is named."]
    operation: Annotated[str, "The operation, as Kafka names it."]
    resource_type: Annotated[_ResourceType, "The type of the resource."]
    resource_name: Annotated[str, "The name of the resource, or what its name begins with."]
    pattern_type: Annotated[Annotated[str, _one_of("LITERAL", "PREFIXED")], "Whether that is the whole name."]
    permission: Annotated[Annotated[str, _one_of("ALLOW")], "What the ACL must say."]
    when: Annotated[Annotated[str, _one_of("preparing", "enabled")], "The step of the upgrade that needs the right."]
    since: Annotated[str | None, "The first version of Connect that needs the right; null means every version."]
    optional: Annotated[bool, "Whether only a check or a convenience is lost without the right."]
    only_to_create: Annotated[bool, "Whether the right is needed only until the topic exists."]
    note: Annotated[str, "What fails without the right."]

    def resource(self) -> str:
        """Return the resource's type and name; a star at the end of the name marks a prefix."""
        return f"{self.resource_type} {self.resource_name}{'*' if self.pattern_type == 'PREFIXED' else ''}"


class JudgedRow(RightRow):
    """A right, and what decided on it."""

    acls: Annotated[list[str], "The ACLs that decide on the right."]


class CheckedPart(JudgedRow):
    """A right, and whether the cluster's ACLs give it."""

    verdict: Annotated[RightVerdict, "What the ACLs say of the right."]


class PlannedAclRow(JudgedRow):
    """A right, and the action planned for it."""

    action: Annotated[_PlannedAction, "Whether an ACL is added."]


class ErrorPart(Printed):
    """Why an ACL was refused."""

    code: Annotated[str, "The code of the error."]
    message: Annotated[str, "Why the ACL was not added.", Header("ERROR")]


class AddedAclRow(JudgedRow):
    """A right, and what came of its ACL."""

    action: Annotated[_Outcome, "What came of the ACL."]
    error: Annotated[ErrorPart | None, "Why the ACL was not added."]


class RightsSummary(Printed):
    """The number of needed rights."""

    rights: Annotated[int, "How many rights are needed."]


class CheckSummary(Printed):
    """The number of rights per verdict."""

    rights: Annotated[int, "How many rights are needed.", TOTAL]
    allowed: Annotated[int, "How many the ACLs give."]
    missing: Annotated[int, "How many no ACL gives."]
    denied: Annotated[int, "How many an ACL denies."]
    allowed_to_hosts: Annotated[int, "How many are given to some hosts only."]
    denied_to_hosts: Annotated[int, "How many are denied to some hosts."]


class ActionsSummary(Printed):
    """The number of rights per action."""

    counts: Annotated[Counts, "How many rights have each action."]


class ScriptData(Printed):
    """The rights for another tool."""

    script: Annotated[str, "The rights as text for another tool."] | UnsetType = UNSET


class RightsData(Printed):
    """The rights that were checked."""

    rights: Annotated[list[CheckedPart], "Every right that is needed."]
    unseen: UnseenParts


class UndoData(Printed):
    """The commands that remove the ACLs again."""

    undo: Annotated[str, "The commands that take away what was added."] | UnsetType = UNSET


def _undo(report: Report) -> Iterable[str]:
    """Yield the summary, then a line to paste for each command that removes an added ACL; a plan only counts them."""
    yield from summary_lines(replace(report, data={}))
    undo = [f"undo: {line}" for line in lines_of(report.data_of(UndoData).undo or "")]
    if undo and report.kind is ACLS_APPLY_PLAN:
        yield Brief(f"undo: {counted(len(undo), 'command')}, which the result prints (-o wide shows them)", whole=undo)
    else:
        yield from undo


def _script(report: Report) -> Iterable[str]:
    yield from lines_of(report.data_of(ScriptData).script or "")


_RIGHT = ("role", "principal?", "operation", "resource")
ACLS_GENERATE = Kind(
    "acls-generate",
    "The rights that Connect, or eosctl, needs; `script` is them as text for another tool.",
    row=RightRow,
    summary=RightsSummary,
    data=ScriptData,
    text=Text(columns=(*_RIGHT, "when", "note"), empty="Nothing is needed: name a --connector."),
)
ACLS_SCRIPT = ACLS_GENERATE.shown_as(Text(columns=(), lines=_script, prose=False))
"""The rights as text for another tool: nothing but that text."""
ACLS_CHECK = Kind(
    "acls-check",
    "What is wrong with the ACLs; `rights` are all that are needed, with the ACLs that decide on them.",
    row=FindingRow,
    summary=CheckSummary,
    data=RightsData,
    text=findings_text("Every right is there."),
)
ACLS_APPLY_PLAN = Kind(
    "acls-apply-plan",
    "The ACLs that would be added; `undo` would take them away again.",
    row=PlannedAclRow,
    summary=ActionsSummary,
    data=UndoData,
    text=Text(columns=(*_RIGHT, "action"), lines=_undo, prose=False),
)
ACLS_APPLY_RESULT = Kind(
    "acls-apply-result",
    "The ACLs that were added, and those that were refused; `undo` takes away again what was added.",
    row=AddedAclRow,
    summary=ActionsSummary,
    data=UndoData,
    text=Text(columns=(*_RIGHT, "action", "error.message?"), lines=_undo, prose=False),
)
