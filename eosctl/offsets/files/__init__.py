"""Offsets to files and back: export, import, restore."""
