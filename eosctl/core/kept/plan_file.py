"""Plan files: a plan as JSON beside its digest, so that nothing is applied that was changed after it was shown.

The contents of a plan belong to its own module (`core.offsets.migration`, `upgrade.plan_file`), which also defines how
its file is read; a file holds no secrets.
"""

from __future__ import annotations

import hashlib
import json
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from eosctl.core.kept.typed_json import WrongMemberError, json_of, typed
from eosctl.errors import InputFileError


class HasDigest(Protocol):
    """A value that can be kept in a plan file: it has a digest."""

    def digest(self) -> str:
        """Return the sha256, in hex."""
        ...


AnyPlan = TypeVar("AnyPlan", bound=HasDigest)


class _Label(Struct, frozen=True):
    """The format and version that every plan file states, whatever its contents."""

    format: str
    version: int


class _Document(Struct, frozen=True):
    """A plan file of the right format; the plan is decoded separately."""

    digest: str
    plan: dict[str, object]


def digest_of(plan: Struct) -> str:
    """Return the sha256, in hex, of the plan's canonical JSON: sorted keys, no spaces, UTF-8."""
    return _digest(plan)


def _digest(document: object) -> str:
    text = json.dumps(document, default=asdict, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class PlanFormat(Struct, frozen=True):
    """The format of one command's plan files; `made_by` is that command, `upgrade plan`."""

    name: str
    version: int
    made_by: str

    def text(self, plan: Struct) -> str:
        """Return the text that `--plan-out` writes: members in the order in which people read them."""
        document = {"format": self.name, "version": self.version, "digest": digest_of(plan), "plan": plan}
        return json.dumps(document, default=asdict, indent=2, ensure_ascii=False) + "\n"

    def read(self, text: str, kind: type[AnyPlan], *, path: str) -> AnyPlan:
        """Read the plan in `text`; raises InputFileError if it is not one, or was changed after it was written."""
        try:
            document = json_of(text)
            label = typed(document, _Label)
            if (label.format, label.version) != (self.name, self.version):
                raise InputFileError(
                    f"{path} is a plan of another format: {label.format} {label.version}",
                    hint=f"This is read: {self.name} {self.version}, from `eosctl {self.made_by} --plan-out`.",
                )
            content = typed(document, _Document)
            plan = typed(content.plan, kind)
            digests = {plan.digest(), _digest(content.plan)}  # the second has members, too, that a plan has not
        except ValueError as exc:
            raise InputFileError(
                f"{path} is not a plan of `{self.made_by}`: {_reason(exc)}",
                hint=f"Write one with `eosctl {self.made_by} --plan-out FILE`.",
            ) from exc
        if digests != {content.digest}:
            raise InputFileError(
                f"{path} was changed after it was written: its digest does not match", hint="Plan again."
            )
        return plan


def _reason(exc: Exception) -> str:
    if isinstance(exc, json.JSONDecodeError):
        return f"it is not JSON (line {exc.lineno}, column {exc.colno}: {exc.msg})"
    if isinstance(exc, WrongMemberError) and exc.is_missing:
        return str(exc)
    return f"its members are not those of a plan ({exc})"
