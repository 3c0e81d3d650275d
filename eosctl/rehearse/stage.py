"""The sandbox of a rehearsal: started, and removed afterwards, whatever happens in between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.java.properties import set_property
from eosctl.deadline import Event
from eosctl.errors import EosctlError, RefusedError
from eosctl.foreign import shell_word
from eosctl.rehearse.ground import GROUP, Forwarder, Ground
from eosctl.rehearse.plan import GrowingFile, RehearsalPlan, built_in_config
from eosctl.rehearse.rules import BOOTSTRAP, without_requirement
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import START_TIMEOUT_S, Stack


class RehearsalStage:
    """The stage of a rehearsal: `open` starts brokers, workers, forwarders and connector; `close` ends them.

    `close` also ends what a failed `open` has started. A sandbox that existed before belongs to somebody else: `open`
    raises, and `close` leaves it alone.
    """

    def __init__(self, app: App, plan: RehearsalPlan, environ: Mapping[str, str]) -> None:
        self._app, self._plan, self._environ = app, plan, environ
        self._forwarders: tuple[Forwarder, ...] = ()
        self._feed: GrowingFile | None = None
        self._ground: Ground | None = None
        self._is_ours = False

    @property
    def directory(self) -> Path:
        """The directory of the sandbox, where `eosctl sandbox` looks for it."""
        return self._app.state_dir / "sandbox" / self._plan.sandbox

    @property
    def ground(self) -> Ground:
        """The ground for faults, once the stage is open."""
        assert self._ground is not None  # noqa: S101 - the first step opens it
        return self._ground

    def open(self) -> None:
        """Start, and return when every task of the connector runs; raise EosctlError."""
        down = f"eosctl sandbox down --name {shell_word(self._plan.sandbox)}"
        if self.directory.exists():
            raise RefusedError(f"there is a sandbox {self._plan.sandbox} already", hint=f"Stop it first: {down}")
        self._is_ours = True
        self._app.on_event(Event(f"starting the sandbox {self._plan.sandbox} (after a crash, stop it with: {down})"))
        request = self._plan.request
        if self._plan.has_slow_network():
            self._forwarders = tuple(Forwarder() for _ in range(request.brokers))
        spec = stack_spec(self._plan, [each.port for each in self._forwarders])
        stack = Stack.up(
            spec, self.directory, name=self._plan.sandbox, environ=self._environ, on_event=self._app.on_event,
            start_timeout_s=max(START_TIMEOUT_S, self._app.deadline.timeout_s), before_workers=self._lead,
        )  # fmt: skip
        config = self._config(stack)
        app = replace(
            self._app, target=stack.target(GROUP), state_dir=stack.directory / "state", on_event=self._sentence
        )
        name = self._plan.connector_name
        self._ground = Ground(app, self.directory, name, config, forwarders=self._forwarders)
        self._start_connector(self._ground, name, config)

    def close(self) -> None:
        """Stop everything, or leave the sandbox as requested and say how to stop it."""
        try:
            if self._feed is not None:
                self._feed.stop()
            stack = Stack.find(self.directory) if self._is_ours else None
            if stack is not None and self._plan.request.keep and stack.alive():
                self._leave(stack)
            elif stack is not None:
                self._app.on_event(Event("stopping the sandbox"))
                stack.down()
        finally:
            for each in self._forwarders:
                each.close()

    def _sentence(self, event: Event) -> None:
        """Forward an operation's messages without its bars and tables, as the rehearsal has its own table."""
        if event.done is None and event.message:
            self._app.on_event(replace(event, standings=()))

    def _lead(self, stack: Stack) -> None:
        for each, node in zip(self._forwarders, stack.state.of_kind("broker"), strict=False):
            each.lead_to(str(node.forwarded_address))

    def _config(self, stack: Stack) -> dict[str, str]:
        if self._plan.connector is not None:
            return self._plan.connector.config_at(stack.bootstrap_servers, stack.login.client_properties())
        self._feed = GrowingFile(stack.directory / "lines.txt", seed=self._plan.request.seed)
        self._feed.start()
        return built_in_config(self._feed.path)

    def _start_connector(self, ground: Ground, name: str, config: Mapping[str, str]) -> None:
        app = ground.app_now()
        worker = app.worker(app.target.connect_urls[0])
        try:
            worker.put_connector_config(name, without_requirement(config) if self._plan.upgrades else config)
        except EosctlError as exc:
            raise EosctlError(
                f"the sandbox's worker does not take the config of {name}: {exc.message}",
                hint=exc.hint or "Name the folder of the plugin with --plugin-path.",
            ) from exc
        ground.wait_for(f"{name} to be there", lambda: ground.status() is not None)
        status = ground.status()
        if status is not None and status.type == "sink":
            raise RefusedError(f"{name} is a sink connector; exactly-once delivery is of sources")
        ground.await_well(within_s=self._app.deadline.timeout_s, ready=lambda: True)
        ground.await_first_offset()
        ground.note(f"all tasks of {name} run")

    def _leave(self, stack: Stack) -> None:
        """Point the workers directly at the brokers, as the forwarders end with this process."""
        for node in stack.state.of_kind("worker") if self._forwarders else ():
            config = Path(node.config)
            text = config.read_text(encoding="ascii")
            config.write_text(set_property(text, BOOTSTRAP, stack.bootstrap_servers), encoding="ascii")
            stack.restart_node(node.name)
        down = f"eosctl sandbox down --name {shell_word(self._plan.sandbox)}"
        self._app.on_event(Event(f"The sandbox stays up. Stop it with: {down}"))


def stack_spec(plan: RehearsalPlan, forwarded: list[int]) -> StackSpec:
    """Describe what to start: the workers with what they take over, behind the forwarders if there are some."""
    request = plan.request
    taken = dict(request.worker.taken)
    paths = [path for path in (request.plugin_path, taken.get("plugin.path")) if path]
    if paths:  # plugins of users may lack the manifests that a sandbox otherwise looks for alone
        taken = {"plugin.discovery": "hybrid_warn", **taken, "plugin.path": ",".join(paths)}
    if forwarded:
        taken[BOOTSTRAP] = ",".join(f"127.0.0.1:{port}" for port in forwarded)
    group = GroupSpec(GROUP, (request.start_mode,) * request.workers, worker_config=taken)
    return StackSpec(
        kafka_version=plan.version, brokers=request.brokers, groups=(group,), forwarded=tuple(forwarded),
        rest_login=True, broker_login=True,
    )  # fmt: skip
