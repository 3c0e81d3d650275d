"""Gathers, at one time, all that gates and findings are based on."""
