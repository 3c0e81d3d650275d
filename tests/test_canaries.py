"""A canary for every secret that eosctl is given or reads, and a search of everything that it prints or keeps.

Every command runs on fakes with canaries in each of its inputs: once as it should, once with doors that break inside,
so that a traceback (-vv) is printed.
"""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eosctl.core.clients.settings import Secret, revealed
from eosctl.report import plain
from eosctl.target import Target
from tests.command_lines import LINES, REFUSED, RESULTS, WITHOUT_LINE, Line, prepare, run_line
from tests.command_tree import leaves
from tests.conftest import Invoke, Outcome
from tests.fakes.canaries import CANARY_WORDS, SESSION_KEY, WAYS, World, by_files, canary_world

REVEALED = {
    "files": {"canary-sasl", "canary-key", "canary-token"},
    "profile": {"canary-env", "canary-file", "canary-command", "canary-rest"},
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with canary_world(tmp_path) as built:
        yield built


def everything(outcome: Outcome, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """All that a command printed, logged or left behind, by where it is."""
    found = {"stdout": outcome.stdout, "stderr": outcome.stderr, "log": caplog.text}
    for path in tmp_path.rglob("*"):
        if path.is_file() and "inputs" not in path.parts:
            found[str(path.relative_to(tmp_path))] = path.read_text(encoding="utf-8")
    return found


def leaks(found: dict[str, str]) -> list[tuple[str, str]]:
    return [(where, word) for where, text in found.items() for word in CANARY_WORDS if word in text]


def test_every_leaf_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """A line counts only because test_no_secret_comes_out fails where it does not reach its result."""
    with capsys.disabled():
        print("", *(f"not searched: {leaf}: {reason}" for leaf, reason in WITHOUT_LINE.items()), sep="\n  ")
    searched = {line.leaf for line in LINES}
    assert set(leaves()) - searched == set(WITHOUT_LINE)
    assert all(WITHOUT_LINE.values())


@pytest.mark.parametrize(("way", "output"), [("files", "json"), ("profile", "text")])
@pytest.mark.parametrize("line", LINES, ids=str)
def test_no_secret_comes_out(
    invoke: Invoke, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, line: Line, way: str, output: str
) -> None:
    """A fifth of the lines used to fail before their real work, one for an option that was gone, and nobody saw it."""
    prepare(invoke, world, line, way=way)
    caplog.set_level(logging.DEBUG)
    outcome = run_line(invoke, world, line, "-vv", "--log-file", str(tmp_path / "log"), way=way, output=output)
    assert not leaks(everything(outcome, tmp_path, caplog))
    assert "Traceback" not in outcome.stderr, outcome.stderr
    assert outcome.exit_code in RESULTS, f"exit code {outcome.exit_code}: {outcome.stderr}"
    if output == "json" and line.document:
        assert outcome.json()["status"] == RESULTS[outcome.exit_code]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", REFUSED, ids=str)
def test_no_secret_comes_out_of_a_refusal(
    invoke: Invoke, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, line: Line, way: str
) -> None:
    caplog.set_level(logging.DEBUG)
    before = world.everything_written()
    outcome = run_line(invoke, world, line, "-vv", "--log-file", str(tmp_path / "log"), way=way)
    assert not leaks(everything(outcome, tmp_path, caplog))
    assert (outcome.exit_code, REFUSED[line] in outcome.stderr) == (6, True), outcome.stderr
    assert world.everything_written() == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", ["workers list", "offsets list", "fence g-orders-0 --yes", "task-counts list"])
def test_no_secret_comes_out_of_a_traceback(
    invoke: Invoke, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, way: str
) -> None:
    args, environ = WAYS[way](world)
    told = ["-vv", "--log-file", str(tmp_path / "log")]
    outcome = invoke(
        *line.split(), *args, *told, environ=environ, doors=world.doors(broken=True), clock=world.time.clock()
    )
    assert "Traceback" in outcome.stderr
    assert "Traceback" in (tmp_path / "log").read_text(encoding="utf-8")
    assert not leaks(everything(outcome, tmp_path, caplog))
    revealed = {each.reveal() for target in world.targets for each in secrets_of(target)}
    assert revealed >= REVEALED[way], "a canary did not even reach the target: the search proves nothing"
    assert not leaks({"repr": repr(world.targets), "str": str(world.targets)})


def test_only_a_loud_option_exports_secrets_and_a_replay_needs_none(
    invoke: Invoke, world: World, tmp_path: Path
) -> None:
    """A topic of configs could be exported and linted as a store: passwords and session key in clear."""
    args, environ = by_files(world)
    out = tmp_path / "out.ndjson"

    def run(*words: str) -> Any:
        return invoke(*words, *args, "-o", "json", environ=environ, **world.surroundings).json()

    export = ("offsets", "export", "--store", "connect-configs", "--all-records", str(out))
    hidden = run(*export)
    assert [error["code"] for error in hidden["errors"]] == ["secrets_hidden"]
    of_file, of_topic = run("task-counts", "replay", str(out)), run("task-counts", "replay", "--topic")
    assert of_file["data"]["state"] == of_topic["data"]["state"]
    assert of_file["data"]["state"]["ignored"] == []
    loud = run(*export, "--with-secrets")
    assert loud["errors"] == []
    assert "canary-connector" in out.read_text(encoding="utf-8")
    assert SESSION_KEY in out.read_text(encoding="utf-8")


def secrets_of(target: Target) -> Iterator[Secret]:
    for settings in (target.client, target.connect):
        for name in settings.__struct_fields__ if settings else ():
            value = getattr(settings, name)
            if isinstance(value, Secret):
                yield value


def test_the_search_finds_what_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "backup").write_text(json.dumps({"key": SESSION_KEY}))
    found = everything(Outcome(0, "a canary-word", ""), tmp_path, caplog)
    assert {where for where, _word in leaks(found)} == {"stdout", "state/backup"}


def test_a_secret_hides_itself() -> None:
    secret = Secret("canary")
    for text in (repr(secret), str(secret), f"{secret}", f"{secret:>9}", repr([secret]), "%s" % secret):  # noqa: UP031
        assert "canary" not in text


@pytest.mark.parametrize(
    "use",
    [
        lambda secret: "x" + secret,
        lambda secret: "".join([secret]),
        lambda secret: secret[:],
        lambda secret: secret.strip(),
        lambda secret: json.dumps({"a": secret}),
        lambda secret: plain({"a": secret}),
        lambda secret: msgspec.json.encode({"a": secret}),
        lambda secret: secret in "canary",
        bytes,
    ],
)
def test_a_secret_is_no_string(use: Any) -> None:
    """It was one, and json.dumps, a row of a report, `+` and slices showed it."""
    with pytest.raises((TypeError, AttributeError, NotImplementedError)) as caught:
        use(Secret("canary"))
    assert "canary" not in str(caught.value)


def test_secrets_are_compared_and_copied_as_values() -> None:
    secret = Secret("canary")
    assert (pickle.loads(pickle.dumps(secret)), copy.deepcopy(secret)) == (secret, secret)  # noqa: S301 - one's own
    assert len({secret, Secret("canary"), Secret("other")}) == 2
    assert (bool(Secret("")), revealed(Secret("")), revealed(None)) == (False, "", None)
