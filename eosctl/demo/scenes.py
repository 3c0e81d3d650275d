"""The scenes of the demo: what is done, which commands show it, and what each must prove."""

from __future__ import annotations

from collections.abc import Callable

from eosctl.core.ids import task_transactional_id
from eosctl.deadline import Event
from eosctl.demo.answers import columns, lines_with
from eosctl.demo.walk import GROUP, OLD_GROUP, Walk
from eosctl.sandbox.operations import Zombie

NAIVE, MOVED = "clicks", ("orders", "payments")
FIRST_LINES, MORE_LINES = 1000, 50
Scene = tuple[str, str, tuple[str, ...], Callable[[Walk], None]]
"""The name in the report, the title, the lines that say why, and what is done."""


def _topic(connector: str) -> str:
    return f"demo-{connector}"


def _append_lines(walk: Walk, connector: str, first: int, count: int) -> None:
    with (walk.files / f"{connector}.txt").open("a", encoding="utf-8") as source:
        source.writelines(f"{connector} {number:06d}\n" for number in range(first, first + count))


def _put_config(walk: Walk, connector: str, **more: str) -> None:
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(walk.files / f"{connector}.txt"),
        "topic": _topic(connector),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **more,
    }
    walk.worker().put_connector_config(connector, config)


def _deliver(walk: Walk) -> None:
    for connector in (NAIVE, *MOVED):
        _append_lines(walk, connector, 0, FIRST_LINES)
        _put_config(walk, connector)
    for connector in (NAIVE, *MOVED):
        _wait_for_lines(walk, connector, FIRST_LINES)
    walk.eosctl("offsets", "list", shows=columns("CONNECTOR", "GLOBAL", "DEDICATED", "RUNTIME"))
    for connector in (NAIVE, *MOVED):
        _prove_exactly_once(walk, connector, FIRST_LINES)


def _switch_naively(walk: Walk) -> None:
    _put_config(walk, NAIVE, **{"offsets.storage.topic": f"offsets-{NAIVE}"})
    _wait_for_lines(walk, NAIVE, 2 * FIRST_LINES)
    lines = walk.counted(_topic(NAIVE))
    duplicates = lines.total() - len(lines)
    walk.prove(f"{NAIVE} read its whole file again: lines delivered twice", expected=FIRST_LINES, actual=duplicates)


def _move(walk: Walk) -> None:
    for connector in MOVED:
        words = ("offsets", "switch", "--connector", connector, "--to", f"offsets-{connector}", "--yes")
        walk.eosctl(*words, shows=columns("STEP", "OUTCOME", "ACTION", most=6))
        _append_lines(walk, connector, FIRST_LINES, MORE_LINES)
    for connector in MOVED:
        _wait_for_lines(walk, connector, FIRST_LINES + MORE_LINES)
        _prove_exactly_once(walk, connector, FIRST_LINES + MORE_LINES)


def _fence_a_zombie(walk: Walk) -> None:
    connector = MOVED[0]
    zombie_id, topic = task_transactional_id(GROUP, connector, 0), _topic(connector)
    walk.eosctl("connectors", "stop", connector, "--yes", shows=columns("CONNECTOR", "PART", "BEFORE", "AFTER"))
    login = walk.stack.login.librdkafka_settings()
    with Zombie(walk.stack.bootstrap_servers, zombie_id, topic=topic, record=b"from the zombie", login=login) as zombie:
        walk.eosctl("txn", "describe", zombie_id, shows=columns("TRANSACTIONAL-ID", "OWNER", "STATE", "PARTITIONS"))
        walk.prove("consumers wait behind the open transaction", expected="yes", actual=_blocked(walk, topic))
        walk.eosctl(
            "fence", zombie_id, "--yes", shows=columns("TRANSACTIONAL-ID", "EPOCH", "NEW-EPOCH", "OUTCOME"),
        )  # fmt: skip
        walk.prove("the zombie's commit is", expected="fenced", actual=zombie.commit().strip("_").lower())
    walk.wait_for("the transaction to be aborted", lambda: _blocked(walk, topic) == "no")
    walk.prove("consumers still wait", expected="no", actual=_blocked(walk, topic))
    walk.eosctl("connectors", "resume", connector, "--yes", shows=columns("CONNECTOR", "PART", "BEFORE", "AFTER"))
    _append_lines(walk, connector, FIRST_LINES + MORE_LINES, MORE_LINES)
    _wait_for_lines(walk, connector, FIRST_LINES + 2 * MORE_LINES)
    _prove_exactly_once(walk, connector, FIRST_LINES + 2 * MORE_LINES)


def _plan_an_upgrade(walk: Walk) -> None:
    words = ("upgrade", "plan", "--to", "enabled")
    shows = lines_with("pass 1", "pass 2", "restart it", "gates", " pass (", "fail")
    walk.eosctl(*words, group=OLD_GROUP, shows=shows, proves="every gate passes: exit code")


def _audit(walk: Walk) -> None:
    for connector, verdict, exits in (
        (MOVED[0], "exactly_once", 0),
        (MOVED[1], "exactly_once", 0),
        (NAIVE, "not_exactly_once", 3),
    ):
        words = ("audit", "--connector", connector, "--since", "beginning", "--unique", "value")
        answer = walk.eosctl(*words, exits=exits, shows=lines_with(f"{connector}: ", "error ", "warning ", "verdict: "))
        found = answer[0].removeprefix(f"{connector}: ").partition(".")[0] if answer else None
        walk.prove(f"{connector}: verdict", expected=verdict, actual=found)


SCENES: tuple[Scene, ...] = (
    (
        "deliver",
        "Three connectors deliver, exactly once",
        (
            f"{NAIVE}, {MOVED[0]} and {MOVED[1]} each copy a file of {FIRST_LINES:,} lines into a topic. Each",
            "transaction has the records and the source offset of how far they go.",
        ),
        _deliver,
    ),
    (
        "naive",
        "The naive way to an offsets topic of its own",
        (
            f"{NAIVE} gets an offsets topic of its own by a change of its config, and no more. The",
            "documentation promises that Connect falls back to the global offsets. No version of Kafka does.",
        ),
        _switch_naively,
    ),
    (
        "move",
        "The same, by eosctl",
        (
            f"{MOVED[0]} and {MOVED[1]} are to have topics of their own, too. eosctl stops each, copies its offsets,",
            "changes the config, sees that Connect finds every offset, and resumes it.",
        ),
        _move,
    ),
    (
        "fence",
        "A zombie",
        (
            f"A producer that was cut off comes back under the transactional id of a task of {MOVED[0]}, and",
            "leaves a transaction open. Consumers wait behind it. Fencing raises the epoch: it can't commit.",
        ),
        _fence_a_zombie,
    ),
    (
        "upgrade",
        "The upgrade of an older group",
        (
            f"{OLD_GROUP} has two workers without exactly-once. What has to be restarted, in which order, and",
            "does anything prevent it?",
        ),
        _plan_an_upgrade,
    ),
    (
        "audit",
        "The proof",
        (
            "What was delivered is in the brokers' logs. audit reads every transaction there, aborted ones",
            "too. What workers and connectors report does not count.",
        ),
        _audit,
    ),
)


def _blocked(walk: Walk, topic: str) -> str:
    """Return yes or no: whether consumers wait before the end of the topic."""
    with walk.app.topics() as topics:
        return "yes" if any(bound.lso < bound.end for bound in topics.bounds(topic)) else "no"


def _wait_for_lines(walk: Walk, connector: str, count: int) -> None:
    def arrived() -> bool:
        with walk.app.topics() as topics:
            known = topics.describe([_topic(connector)])
        found = walk.counted(_topic(connector)).total() if known else 0
        waiting = Event(f"waiting for {connector}", done=min(found, count), total=count, unit="records")
        walk.app.on_event(waiting)
        return found >= count

    walk.wait_for(f"{count} records in {_topic(connector)}", arrived)


def _prove_exactly_once(walk: Walk, connector: str, count: int) -> None:
    lines = walk.counted(_topic(connector))
    walk.prove(f"{connector}: records delivered", expected=count, actual=lines.total())
    walk.prove(f"{connector}: lines delivered twice", expected=0, actual=lines.total() - len(lines))
