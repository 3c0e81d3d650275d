"""Plan files: a plan as JSON beside its digest, so that nothing is applied that was changed after it was shown.

What a plan holds is its own module's business (`core.migration`, `core.upgrade_plan`); a file holds no secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from eosctl.errors import InputFileError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class HasDigest(Protocol):
    """What can be kept in a plan file: a dataclass with a digest."""

    def digest(self) -> str:
        """sha256, in hex."""
        ...


AnyPlan = TypeVar("AnyPlan", bound=HasDigest)


def digest_of(plan: DataclassInstance) -> str:
    """sha256, in hex, of the plan's canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(asdict(plan), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class PlanFormat:
    """How the files of one command say what they are; `made_by` is that command, `upgrade plan`."""

    name: str
    version: int
    made_by: str

    def text(self, plan: DataclassInstance) -> str:
        """What `--plan-out` writes: members in the order that people read them in."""
        document = {"format": self.name, "version": self.version, "digest": digest_of(plan), "plan": asdict(plan)}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def read(self, text: str, plan_from: Callable[[Mapping[str, Any]], AnyPlan], *, path: str) -> AnyPlan:
        """The plan in `text`; raises InputFileError when it is not one, or was changed after it was written."""
        try:
            document = json.loads(text)
            if (document["format"], document["version"]) != (self.name, self.version):
                raise InputFileError(
                    f"{path} is a plan of another format: {document['format']} {document['version']}",
                    hint=f"This is read: {self.name} {self.version}, from `eosctl {self.made_by} --plan-out`.",
                )
            plan, digest = plan_from(document["plan"]), document["digest"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise InputFileError(
                f"{path} is not a plan of `{self.made_by}`: {_reason(exc)}",
                hint=f"Write one with `eosctl {self.made_by} --plan-out FILE`.",
            ) from exc
        if digest != plan.digest():
            raise InputFileError(
                f"{path} was changed after it was written: its digest does not match", hint="Plan again."
            )
        return plan


def _reason(exc: Exception) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"it is not JSON (line {exc.lineno}, column {exc.colno}: {exc.msg})"
    if isinstance(exc, KeyError):
        return f"it has no {exc.args[0]!r}"
    return f"its members are not those of a plan ({exc})"
