"""Histories from a seed: an honest one is never `not_exactly_once`, and one with a cheat in it never `exactly_once`.

`HistoryScene(history(SEED)).audit()` shows one of them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import settings

from eosctl.audit.audit import Audited
from eosctl.audit.rows import Verdict
from eosctl.core.wording import rfc3339
from tests.audit.cheated_histories import CHEATS, cheated
from tests.audit.cheats import Cheat
from tests.audit.histories import History, history
from tests.audit.history_scene import HistoryScene
from tests.audit.history_settings import Setting
from tests.audit.log_scene import run_on
from tests.conftest import Invoke

ALL, FEW = 900, 300
"""How many of each kind. Of seven faults put into the audit, the three that 10,000 show were shown by the first 140."""
PARTS = 10
"""The honest ones are so many tests, as tests are shared out among processes."""


def count(parts: int) -> range:
    """How many of `parts`: all in a full run, a third with --fast."""
    return range((ALL if settings().max_examples >= 50 else FEW) // parts)


@pytest.mark.parametrize("part", range(PARTS))
def test_an_honest_history_is_never_accused(part: int) -> None:
    accused: dict[str, Sequence[str]] = {}
    verdicts = Counter[Verdict]()
    for number in count(PARTS):
        seed = f"{part}.{number}"
        found = HistoryScene(history(seed)).audit()
        verdicts[found.connector.verdict] += 1
        if found.connector.verdict is Verdict.NOT_EXACTLY_ONCE:
            accused[seed] = [row.message for row in found.rows if row.severity == "error"]
    assert not accused
    assert verdicts[Verdict.EXACTLY_ONCE] > verdicts.total() / 5, "one that proves nothing accuses nobody either"


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.__name__)
def test_a_history_with_a_cheat_in_it_is_never_proven(cheat: Cheat) -> None:
    proven = []
    for seed in count(len(CHEATS)):
        scene = HistoryScene(cheated(cheat, seed))
        if proves(scene.audit(), scene.history):
            proven.append(seed)
    assert not proven


def proves(found: Audited, made: History) -> bool:
    """Whether the verdict is exactly_once, of a time in which the cheat lies."""
    assert made.cheated_ms is not None
    since_ms = found.connector.window.proven_since_ms or 0
    is_before = made.cheated_ms[0] - made.setting.apart_ms <= since_ms
    return found.connector.verdict is Verdict.EXACTLY_ONCE and not is_before


@pytest.mark.parametrize(
    "setting",
    [
        Setting(),
        Setting(apart_ms=3000, drifts=True, leaders_move=True, tasks=3, partitions=3, offsets_partitions=3),
        Setting(late=True, lost_markers=True, spread_ms=60),
        Setting(rebalances=True, other_connector=True),
        Setting(own_from=2.0, apart_ms=10, restarts=0.0, aborts=0.0, tasks=3, partitions=3, offsets_partitions=3),
        Setting(own_from=2.0, apart_ms=10, partitions=1, offsets_partitions=1),
    ],
)
def test_where_it_can_be_known_an_honest_history_is_proven(setting: Setting) -> None:
    """From transaction version 2 on; before, where clocks agree, and nothing is aborted or there is one partition."""
    unproven: dict[str, str] = {}
    for number in range(30):
        made = history(f"known {number}", setting)
        if any(each.is_committed for each in made.transactions):
            found = HistoryScene(made).audit().connector
            if found.verdict is not Verdict.EXACTLY_ONCE:
                unproven[f"known {number}"] = found.why
    assert not unproven


@pytest.mark.parametrize("number", range(5))
def test_the_command_says_the_same(invoke: Invoke, number: int) -> None:
    """`HistoryScene.audit` begins where the topics are known; here Connect is asked, and a window is typed."""
    for seed in range(number * 10, number * 10 + 10):
        cheat = CHEATS[seed % len(CHEATS)]
        for made, again in (
            (history(f"command {seed}"), history(f"command {seed}")),
            (cheated(cheat, f"command {seed}"), cheated(cheat, f"command {seed}")),
        ):
            scene = HistoryScene(made)
            if scene.begin is not None or len(made.offsets_topics) > 1:
                continue  # there is no option for it
            expected = HistoryScene(again).audit()
            done = run_on(scene.scene, invoke)("-o", "json", *words(scene))
            (found,) = done.json()["data"]["connectors"]
            assert (found["verdict"], found["why"]) == (expected.connector.verdict, expected.connector.why), seed
            assert len(done.json()["data"]["rows"]) == len(expected.rows)


def words(scene: HistoryScene) -> list[str]:
    """Return the options for its window."""
    window, found = scene.window, list[str]()
    if window.since_offset is not None:
        found += ["--since", str(window.since_offset)]
    elif window.since_ms is not None:
        found += ["--since", rfc3339(window.since_ms) or ""]
    if window.until_ms is not None:
        found += ["--until", rfc3339(window.until_ms) or ""]
    return found
