"""How `python3 -m tests` runs: what there is, in which parts, side by side, and a verdict that nothing can fool."""
