"""Manifests of workloads, read; pure."""
