"""Use cases: gather, plan, apply; the only code that joins eosctl.core to I/O."""
