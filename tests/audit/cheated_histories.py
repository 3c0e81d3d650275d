"""Every way of cheating, and a history with one of them in it, from a seed."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.audit import cheats
from tests.audit.cheats import Cheat
from tests.audit.histories import History, history
from tests.audit.history_settings import any_setting

_DISTINCT_MS = 200
"""Transactions that share an epoch must take about as long, if markers' times are to tell them apart."""
CHEATS: tuple[Cheat, ...] = (
    cheats.plain_record,
    cheats.plain_record_of_1970,
    cheats.plain_record_of_2100,
    cheats.no_offsets,
    cheats.null_offsets,
    cheats.offsets_of_another,
    cheats.deleted_offset,
    cheats.aborted_part,
    cheats.aborted_part_raised_epoch,
    cheats.aborted_offsets_part,
    cheats.aborted_offsets_part_raised_epoch,
    cheats.records_aborted_offsets_committed,
    cheats.marker_never_written,
    cheats.offsets_marker_never_written,
    cheats.marker_lost_before_an_abort,
    cheats.truncated_records,
    cheats.truncated_offsets,
    cheats.unlisted_topic,
    cheats.zombie_of_another_number,
    cheats.second_group,
    cheats.source_read_twice,
    cheats.offsets_topic_made_anew,
    cheats.offsets_elsewhere,
    cheats.zombie_of_an_older_epoch,
    cheats.id_like_the_groups,
    cheats.nobody_knows_the_producer,
    cheats.offsets_without_transaction,
)


def cheated(cheat: Cheat, seed: int | str) -> History:
    """Return a history with the cheat in it."""
    number = 0
    while True:
        name = f"{cheat.__name__} {seed} {number}"
        setting = any_setting(random.Random(name))  # noqa: S311 - no secret
        every_ms = max(setting.every_ms, _DISTINCT_MS if setting.own_from > 0 else 0)
        made = history(name, replace(setting, live=False, every_ms=every_ms))
        if cheat(made):
            return made
        number += 1
