"""Every kind of document, collected from the features' declarations; only `schema` and `explain` need all of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from eosctl.output.json_schema import schema_of_kind
from eosctl.output.rows import Kind

ROW_MODULES = (
    "eosctl.acls.rows",
    "eosctl.audit.rows",
    "eosctl.checks.rows",
    "eosctl.connectors.rows",
    "eosctl.create.rows",
    "eosctl.explain.rows",
    "eosctl.exporter.rows",
    "eosctl.failures.rows",
    "eosctl.fence.rows",
    "eosctl.group.rows",
    "eosctl.migrate.rows",
    "eosctl.move.rows",
    "eosctl.offsets.configs.rows",
    "eosctl.offsets.files.rows",
    "eosctl.offsets.history.rows",
    "eosctl.offsets.lint.rows",
    "eosctl.offsets.rows",
    "eosctl.offsets.snapshots.rows",
    "eosctl.offsets.switch.rows",
    "eosctl.offsets.write_rows",
    "eosctl.plugins.rows",
    "eosctl.profiles.rows",
    "eosctl.rehearse.rows",
    "eosctl.rescue.rows",
    "eosctl.sandbox.rows",
    "eosctl.state.history",
    "eosctl.task_counts.rows",
    "eosctl.task_counts.write_rows",
    "eosctl.txn.rows",
    "eosctl.txn.applications.rows",
    "eosctl.upgrade.apply_rows",
    "eosctl.upgrade.rows",
    "eosctl.watch.rows",
)
"""The modules that declare kinds; a test compares the list with the tree."""


def declared_kinds() -> Mapping[str, Kind]:
    """Name -> kind, by name."""
    modules = (importlib.import_module(name) for name in ROW_MODULES)
    found = {each: each for module in modules for each in vars(module).values() if _is_declared(each)}
    return {name: found[name] for name in sorted(found)}


def _is_declared(each: object) -> bool:
    return isinstance(each, Kind) and not each.is_variant


def all_kinds() -> dict[str, str]:
    """Name -> what a document of this kind says."""
    return {name: kind.what for name, kind in declared_kinds().items()}


def schema_of(name: str) -> dict[str, object]:
    """Return the JSON Schema of a kind; raises KeyError."""
    return schema_of_kind(declared_kinds()[name])
