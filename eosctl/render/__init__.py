"""Report -> text or JSON; the only importer of rich."""
