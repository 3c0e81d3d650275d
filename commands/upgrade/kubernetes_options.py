"""The options that say where in Kubernetes the workers run, and the driver that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct

from eosctl.errors import UsageError

if TYPE_CHECKING:
    from eosctl.app import App
    from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver
    from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl

_F = TypeVar("_F", bound=Callable[..., object])
_KINDS = (
    "statefulset/, deployment/, kafkaconnect/, kafkamirrormaker2/ or (of Confluent's operator, untried) connect/NAME"
)

_POD_OPTIONS = (
    ("--env-name", "NAME", "the variable that sets the mode in the pods, or the one with all properties."),
    ("--container", "NAME", "the worker's container, if its variables do not show which it is."),
    ("--configmap", "NAME", "the ConfigMap with the mounted properties file, if that sets the mode."),
    ("--key", "KEY", "the key of the ConfigMap that is the properties file."),
)


def place_options(what: str, *, prefix: str = "") -> Callable[[_F], _F]:
    """Add --workload, whose help ends with `what`, and the options that lead kubectl to it."""

    def add(function: _F) -> _F:
        for option in (
            click.option("--kubeconfig", metavar="PATH", help=f"{prefix}kubectl's configuration file."),
            click.option("--context", metavar="NAME", help=f"{prefix}the context of kubectl's configuration."),
            click.option("--namespace", metavar="NAME", help=f"{prefix}the namespace."),
            click.option("--workload", multiple=True, metavar="KIND/NAME", help=f"{prefix}{_KINDS}; {what}"),
        ):
            function = option(function)
        return function

    return add


def pod_options(*, prefix: str = "") -> Callable[[_F], _F]:
    """Add the options of how the mode is set in a pod."""

    def add(function: _F) -> _F:
        for name, metavar, words in reversed(_POD_OPTIONS):
            function = click.option(name, metavar=metavar, help=f"{prefix}{words}")(function)
        return function

    return add


class PodOptions(Struct, frozen=True):
    """The options of the workers' place in Kubernetes, and of how the mode is set in a pod."""

    workload: tuple[str, ...] = ()
    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    env_name: str | None = None
    container: str | None = None
    configmap: str | None = None
    key: str | None = None

    def named_workloads(self, app: App) -> KubernetesDriver | None:
        """Return a driver that only looks at the workloads, which need not be fit for a change; None without any."""
        from eosctl.upgrade.drivers.kubernetes.driver import named_workloads

        return named_workloads(app, self.workload, self._kubectl()) if self._names_one() else None

    def kubernetes_driver(self, app: App, *, watches: bool = False) -> KubernetesDriver | None:
        """Return the driver for the named workloads; None without any. `watches`: somebody else changes them.

        Raises what `kubernetes_driver` raises, and UsageError for options that need a workload.
        """
        from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
        from eosctl.upgrade.drivers.kubernetes.mode_places import MountedProperties

        if not self._names_one():
            return None
        if (self.configmap is None) != (self.key is None):
            raise UsageError("--configmap and --key go together")
        if self.configmap is not None and self.env_name is not None:
            raise UsageError("--configmap and --env-name contradict each other: the mode is set in one place")
        file = None if self.configmap is None or self.key is None else MountedProperties(self.configmap, self.key)
        return kubernetes_driver(
            app,
            self.workload,
            self._kubectl(),
            variable=self.env_name,
            container=self.container,
            file=file,
            watches=watches,
        )

    def _names_one(self) -> bool:
        alone = [name for name in PodOptions.__struct_fields__ if getattr(self, name)]
        if alone and not self.workload:
            raise UsageError(f"--{alone[0].replace('_', '-')} needs --workload")
        return bool(self.workload)

    def _kubectl(self) -> Kubectl:
        from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl

        return Kubectl(self.namespace, self.context, self.kubeconfig)
