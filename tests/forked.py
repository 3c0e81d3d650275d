"""A Python program as a process of its own that has no module left to load: those of the tests are in it already.

To load what a command needs takes most of the time of a program that a test starts. What depends on a start of Python
itself (its options, what is loaded and when) is for programs that are really started: tests/test_imports.py.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_STREAMS = (0, 1, 2)


def forked(
    program: str,
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    first: Callable[[], object] = lambda: None,
    **how: Any,
) -> subprocess.Popen[Any]:
    """Starts `program` (source text), as `python -c` does; `first` is called in the process, `how` is what Popen takes.

    Popen forks, arranges streams and session, and calls a function there, which never returns.
    """

    def run() -> None:
        first()
        os.closerange(len(_STREAMS), os.sysconf("SC_OPEN_MAX"))  # Popen waits for the end of one of them
        os._exit(_run(program, ["-c", *arguments], environ))

    return subprocess.Popen([sys.executable], preexec_fn=run, **how)


def _run(program: str, argv: list[str], environ: Mapping[str, str]) -> int:
    """The exit code of the program, after what Python does at the end of one."""
    _as_if_started(argv, environ)
    code = 0
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - a test's own
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # nobody reads any more: Python says so with this exit code
            code = code or 120
    return code


def _as_if_started(argv: list[str], environ: Mapping[str, str]) -> None:
    """Leaves what is the test process's own: what it does at its end, its signals, its streams, its warnings."""
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    faulthandler.disable()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGWINCH):
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = argv
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in zip(_STREAMS, "rww", strict=True))  # noqa: SIM115
    sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    warnings.resetwarnings()
    threading.excepthook = threading.__excepthook__
    gc.freeze()  # what the tests hold is neither looked through nor copied
    gc.enable()
