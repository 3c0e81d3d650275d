"""Plan: what a writing command hands to `run_plan`, which shows it, asks, applies and records it.

Every feature makes its own by a function `prepare_…`, beside the code that applies it; the library itself never asks.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from eosctl.errors import RefusedError
from eosctl.report import Problem, Report
from eosctl.target import Target


class Plan(Struct, frozen=True):
    """A write, ready to be shown, confirmed and applied; nothing was written so far.

    `show` makes its report, `question` asks whether to go on. `apply` is None where nothing is to be written, or must
    not be. `target` is where the write goes. `refusal` forbids it, even if it is confirmed; a dry run only warns of it.
    """

    show: Callable[[], Report]
    question: str
    apply: Callable[[], Report] | None
    target: Target
    refusal: RefusedError | None = None

    def report(self, *, dry_run: bool = False) -> Report:
        """Return the report that shows the plan; raises the refusal, which in a dry run becomes a warning."""
        if self.refusal is None:
            return self.show()
        if not dry_run:
            raise self.refusal
        why, shown = self.refusal, self.show()
        warning = Problem(why.code, f"would be refused: {why.message}", why.hint).as_warning()
        return replace(shown, problems=[*shown.problems, warning])
