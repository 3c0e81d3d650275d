"""A pytest plugin: `--processes N` runs the tests in N processes, which are forked when all of them are imported.

Each process takes the next file whenever it has ended one, in the order of the command line: none is idle before the
last file is taken, and nothing is imported twice. Reports go to the first process, which prints and judges them.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import warnings
from collections.abc import Sequence
from itertools import groupby, pairwise
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

TOGETHER = (
    "tests/checks/test_doctor_remedies.py",
    "tests/commands/test_command_shape.py",
    "tests/docs_site/test_pictures.py",
    "tests/machine/test_children.py",
    "tests/output/test_declared_kinds.py",
    "tests/state/test_recorded_waivers.py",
    "tests/test_docstrings.py",
    "tests/test_layers.py",
    "tests/test_names.py",
    "tests/test_pasted_commands.py",
    "tests/test_reference.py",
)
"""They look through the syntax trees of all sources, which a process parses once (tests/source_trees.py)."""

_NUMBER_BYTES = 2
_PIPE_BYTES = 65_536
_FORK = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, metavar="N", help="run the tests in N processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In place of pytest's own loop where there are several processes and nothing is wrong by now."""
    count = session.config.getoption("--processes")
    if count < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # makes it; each process would empty it
    files = _files(session.items)
    read, write = os.pipe()
    assert len(files) * _NUMBER_BYTES <= _PIPE_BYTES, "more files than a pipe holds numbers"
    os.write(write, b"".join(number.to_bytes(_NUMBER_BYTES) for number in range(len(files))))
    os.close(write)
    processes = [_Process(session, files, read, number) for number in range(count)]
    try:
        _follow(session, {each.reports: each for each in processes})
    finally:
        for each in processes:
            each.process.terminate()
            each.process.join()
        os.close(read)
    return True


def _files(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests file by file; those of `TOGETHER` are as one file where they stand one behind the other."""
    files = groupby(items, key=lambda item: "together" if _file(item) in TOGETHER else _file(item))
    return [list(tests) for _file, tests in files]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


class _Process:
    """One of the processes; `reports` is the end of it on this side."""

    def __init__(self, session: pytest.Session, files: Sequence[Sequence[pytest.Item]], queue: int, number: int):
        self.reports, sender = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_run, args=(session, files, queue, number, sender))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Arrow has threads; they do nothing yet
            self.process.start()
        sender.close()


def _follow(session: pytest.Session, running: dict[Connection, _Process]) -> None:
    """Reports what the processes tell until all have ended; raises Session.Failed for one that did not end well."""
    config, failed = session.config, list[str]()
    while running:
        for there in wait(list(running)):
            assert isinstance(there, Connection)
            try:
                told = json.loads(there.recv_bytes())
            except EOFError:
                process = running.pop(there).process
                process.join()
                failed += [f"{process.name} ended with {process.exitcode}"] if process.exitcode else []
            else:
                for each in told:
                    report = config.hook.pytest_report_from_serializable(config=config, data=each)
                    config.hook.pytest_runtest_logreport(report=report)
    session.shouldfail = "; ".join(failed) or False  # what pytest prints at the end
    if failed or session.testsfailed:
        raise session.Failed


def _run(
    session: pytest.Session, files: Sequence[Sequence[pytest.Item]], queue: int, number: int, sender: Connection
) -> None:
    """What a process does."""
    config = session.config
    for name in ("terminalreporter", "outcomes"):
        config.pluginmanager.unregister(name=name)
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:  # its files are those of all processes
        capture.stop_global_capturing()
        capture.start_global_capturing()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / f"process-{number}"
    folders._basetemp.mkdir()
    config.pluginmanager.register(_Teller(config, sender))
    try:
        while taken := os.read(queue, _NUMBER_BYTES):
            # behind a file only what is the session's own stays: nobody knows yet which one comes next
            for item, following in pairwise([*files[int.from_bytes(taken)], session]):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    finally:
        session._setupstate.teardown_exact(None)


class _Teller:
    """Tells the first process what became of each test, once it has ended."""

    def __init__(self, config: pytest.Config, sender: Connection) -> None:
        self._config, self._sender = config, sender
        self._reports = list[object]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self) -> None:
        self._sender.send_bytes(json.dumps(self._reports).encode())
        self._reports.clear()
