"""Checks of a cluster, whatever runs on it: known bugs of its versions, and its applications."""
