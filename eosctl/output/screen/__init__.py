"""A full-screen terminal display: rows of styled text, repainted where they changed, and pressed keys."""
