"""`python3 -m eosctl` and the `eosctl` script.

In a checkout without an install, click or `eosctl.commands` is missing: then the bootstrap makes `.venv` and starts
over in it.
"""

from __future__ import annotations

import gc
import importlib
import signal
import sys
from types import FrameType

_MOMENT_S = 0.01


def main() -> None:
    """Run the command line; never returns."""
    gc.set_threshold(100_000, 20, 20)  # rows are no cycles: looking for some took a quarter of a long listing
    on_interrupt = signal.getsignal(signal.SIGINT)
    if on_interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules load there is nothing to end but the process
    try:
        module = importlib.import_module("eosctl.commands.frame.root")
    except ModuleNotFoundError as exc:
        if exc.name not in ("click", "eosctl.commands"):
            raise
        signal.signal(signal.SIGINT, on_interrupt)
        from eosctl.bootstrap import run_in_venv

        run_in_venv(extras=("spark",), argv=["-m", "eosctl", *sys.argv[1:]])
    signal.signal(signal.SIGINT, on_interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _interrupt_again
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, _interrupt)
    try:
        module.root(prog_name="eosctl")
    finally:
        gc.freeze()  # nothing is left but to end: Python would look for cycles among all that was loaded


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt a moment later where Python drops a KeyboardInterrupt, as in a weak reference's callback."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
