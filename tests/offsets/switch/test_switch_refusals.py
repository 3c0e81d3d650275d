"""What `offsets switch` refuses before it stops anything, and what it leaves to whoever came meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.names import GLOBAL as GLOBAL_STORE
from eosctl.core.workers.access import ConnectAccess
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, ExitCode, NotFoundError, RefusedError, UnsupportedError, UsageError
from eosctl.offsets.switch.apply import apply_switch
from eosctl.offsets.switch.plan import STOP, SwitchRequest, plan_switch
from eosctl.offsets.switch.report import show_switch
from tests.fakes.switching import GLOBAL, KEY, NAME, OWN, URL, SwitchWorld, outcomes, switch


@pytest.mark.parametrize("to", [GLOBAL_STORE, GLOBAL, OWN])
def test_what_is_there_already_is_nothing_to_do(app: App, world: SwitchWorld, to: str) -> None:
    """It used to be refused, so that a job that runs twice failed the second time."""
    if to == OWN:
        assert switch(app, OWN).exit_code is ExitCode.OK
    before = list(world.calls)
    shown = show_switch(app, plan_switch(app, SwitchRequest(NAME, to)))
    assert (shown.exit_code, shown.rows, shown.problems, shown.data.undo) == (ExitCode.OK, [], [], None)
    assert world.calls == before


def test_what_was_deleted_in_the_topic_in_use_is_not_lacking_there(app: App, world: SwitchWorld) -> None:
    """A partition that was reset is read anew on purpose, whatever the global topic has: the switch was refused."""
    assert switch(app, OWN).exit_code is ExitCode.OK
    world.topics.put(OWN, KEY, None)
    assert world.stored(GLOBAL, KEY) == 3
    assert plan_switch(app, SwitchRequest(NAME, OWN)).steps == ()


def test_a_worker_that_nobody_named_does_not_get_the_config(world: SwitchWorld) -> None:
    """It got all of it, passwords included, while the user's own password was withheld; nothing is stopped, either."""
    other = ConnectAccess(named=frozenset({"https://w1:8083"}))
    with pytest.raises(RefusedError) as caught:
        plan_switch(world.app(connect_urls=(), connect=other), SwitchRequest(NAME, OWN))
    assert f"-u {URL}." in str(caught.value.hint)
    assert world.calls == []
    trusting = world.app(connect_urls=(), connect=replace(other, trust_discovered=True))
    assert plan_switch(trusting, SwitchRequest(NAME, OWN)).steps


def configured_by_hand(world: SwitchWorld) -> None:
    """The property alone was changed, so that the task reads on from nothing; here before it did."""
    world.place("RUNNING", offsets_storage_topic=OWN)


def configured_with_references(world: SwitchWorld) -> None:
    reference = {"producer.override.sasl.jaas.config": "${file:/x:y}", "producer.override.bootstrap.servers": "x:1"}
    world.place("RUNNING", **{name.replace(".", "_"): value for name, value in reference.items()})


Setup = Callable[[SwitchWorld], object]


@pytest.mark.parametrize(
    ("setup", "to", "error", "complaint"),
    [
        (configured_by_hand, OWN, RefusedError, "in topic own already, which lacks 1 source partition"),
        (lambda w: w.connect.connectors.clear(), OWN, NotFoundError, "no connector c"),
        (lambda w: w.connector.config.update({"connector.class": "FileStreamSink"}), OWN, RefusedError, "is a sink"),
        (lambda w: w.connect.rebalance(), OWN, None, ""),
        (lambda w: w.connector.config.update({"file": "other"}), OWN, RefusedError, "of another group"),
        (lambda w: w.topics.topics.pop("connect-configs"), OWN, RefusedError, "does not exist"),
        (lambda w: setattr(w.connect, "kafka_cluster_id", "other"), OWN, RefusedError, "uses Kafka cluster other"),
        (lambda w: setattr(w.connect, "version", "3.4.0"), OWN, UnsupportedError, "from Kafka 3.5 on"),
        (lambda w: setattr(w.connector, "state", "UNASSIGNED"), OWN, RefusedError, "UNASSIGNED"),
        (configured_with_references, OWN, RefusedError, "only its worker can resolve producer.override.sasl.jaas.conf"),
    ],
)
def test_what_is_refused(
    app: App, world: SwitchWorld, setup: Setup, to: str, error: type[EosctlError] | None, complaint: str
) -> None:
    setup(world)
    if error is None:
        assert plan_switch(app, SwitchRequest(NAME, to)).steps, "a short rebalance is waited for"
        return
    with pytest.raises(error, match=complaint):
        plan_switch(app, SwitchRequest(NAME, to))
    assert world.calls == []


@pytest.mark.parametrize("to", ["own@prod", "a/b", "file:x", "", "own topic"])
def test_a_target_that_can_be_no_topic_is_not_put_into_the_config(app: App, world: SwitchWorld, to: str) -> None:
    with pytest.raises(UsageError, match=r"can't be a topic|is not a store|is on this cluster"):
        plan_switch(app, SwitchRequest(NAME, to))
    assert (world.calls, "offsets.storage.topic" in world.connector.config) == ([], False)


def test_a_config_that_connect_would_not_take_stops_nothing(app: App, world: SwitchWorld) -> None:
    """A database that was down: the connector was stopped, and stayed so, as its new config was refused."""
    world.connect.objections["database.hostname"] = "Unable to connect: Connection refused"
    with pytest.raises(RefusedError, match=r"would get: database\.hostname: Unable to connect.*nothing was changed"):
        plan_switch(app, SwitchRequest(NAME, OWN))
    world.connect.objections.clear()
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    world.connect.objections["database.hostname"] = "Unable to connect: Connection refused"
    with pytest.raises(RefusedError, match="Unable to connect"):
        apply_switch(app, plan)
    assert (world.connector.state, world.calls) == ("RUNNING", [])


@pytest.mark.parametrize("redacts", [True, False])
def test_where_a_worker_redacts_what_is_wrong_its_log_is_named(app: App, world: SwitchWorld, redacts: bool) -> None:
    """As workers of Kafka 4.4 do with values of config providers: nothing to be done about it was said."""
    text = (
        "Invalid value for configuration 'url': the value resolved from the config provider reference failed validation"
    )
    world.connect.objections["url"] = text if redacts else "Unable to connect"
    with pytest.raises(RefusedError) as caught:
        plan_switch(app, SwitchRequest(NAME, OWN))
    assert ("TRACE" in str(caught.value.hint)) is redacts


def test_what_connect_says_of_a_config_has_no_secret_of_it(app: App, world: SwitchWorld) -> None:
    """Drivers repeat the URL that they can't open, with its password; a validation names the settings that are some."""
    world.place("RUNNING", connection_url="jdbc:x://db/s?password=canary-1", shop_name="canary-2")
    world.connect.definitions["shop.name"] = {"type": "PASSWORD"}
    world.connect.objections["connection.url"] = "can't open jdbc:x://db/s?password=canary-1 as canary-2"
    with pytest.raises(RefusedError, match=r"can't open jdbc:x://db… as \*\*\*") as caught:
        plan_switch(app, SwitchRequest(NAME, OWN))
    assert "canary" not in f"{caught.value.message} {caught.value.hint}"


def test_a_source_that_goes_down_meanwhile_leaves_a_way_back(app: App, world: SwitchWorld) -> None:
    """What was left was STOPPED, which nothing said, and the way back needs nothing of the source."""
    down = {"database.hostname": "Unable to connect"}
    world.connect.after("set_state", lambda _call: world.connect.objections.update(down))
    report = switch(app, OWN)
    assert outcomes(report)["configure"] == "failed"
    told = "the switch of c is not finished: the connector is STOPPED and keeps its offsets in the global offsets topic"
    assert report.problems[-1].message == f"{told}; it is to be RUNNING in the end"
    assert "Go back: eosctl offsets switch --connector c --to global" in str(report.problems[-1].hint)
    back = switch(app, GLOBAL_STORE)
    assert (back.exit_code, world.connector.state, world.delivered) == (ExitCode.OK, "RUNNING", world.lines)


def test_a_worker_that_says_nothing_any_more_is_not_waited_for_twice(app: App, world: SwitchWorld) -> None:
    """Where the connector stands can't be told then, and the two ways on are said all the same."""
    world.connect.after("set_state", lambda _call: world.connect.frozen.add(URL))
    app = replace(app, deadline=Deadline.after(60, app.clock))
    began_s = world.time.now_s
    report = switch(app, OWN)
    assert outcomes(report)["stop"] == "failed"
    assert "the state of the connector is unknown" in report.problems[-1].message
    assert 60 <= world.time.now_s - began_s < 70


@pytest.mark.parametrize(("before", "verb", "after"), [("PAUSED", "resume", "RUNNING"), ("RUNNING", "pause", "PAUSED")])
def test_what_somebody_did_since_a_run_was_cut_off_stays(
    app: App, world: SwitchWorld, before: str, verb: str, after: str
) -> None:
    """The next run paused a connector that somebody had resumed, as it was PAUSED when the first one began."""
    world.place(before)
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(app, OWN).exit_code is ExitCode.PARTIAL
    world.connect.worker().set_state(NAME, verb)
    world.time.sleep(2)
    assert world.connector.state == after
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    [said] = show_switch(app, plan).problems
    assert f"the connector was {before}, and is {after} now, which it stays" in said.message
    assert apply_switch(app, plan).exit_code is ExitCode.OK
    assert (world.connector.state, world.store()) == (after, OWN)


@pytest.mark.parametrize(("version", "refused"), [("4.0.0", True), ("3.9.2", False)])
def test_a_name_that_rest_cannot_have_is_refused_before_anything_is_done(
    app: App, world: SwitchWorld, version: str, refused: bool
) -> None:
    """Its stop failed, in the first step; Kafka 4.0 came with Jetty 12."""
    world.connect.version = version
    world.connect.connectors["a/b"] = world.connect.connectors.pop(NAME)
    world.keep_config("connector-a/b", {"properties": world.connect.connectors["a/b"].config})
    if not refused:
        assert STOP in plan_switch(app, SwitchRequest("a/b", OWN)).steps
        return
    with pytest.raises(UnsupportedError, match=r"takes no slash, backslash.*no 'a/b'; nothing was changed"):
        plan_switch(app, SwitchRequest("a/b", OWN))


@pytest.mark.parametrize("state", ["PreparingRebalance", "Empty"])
def test_a_group_that_is_not_stable_is_refused(app: App, world: SwitchWorld, state: str) -> None:
    if state == "Empty":
        world.connect.modes.clear()
    else:
        world.connect.rebalance(lasts_s=math.inf)
    with pytest.raises(RefusedError, match=r"in a rebalance|has no workers"):
        plan_switch(replace(app, deadline=Deadline.after(0.3, app.clock)), SwitchRequest(NAME, OWN))
