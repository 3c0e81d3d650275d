"""The upgrade in two rolling restarts: gates, plan and status."""
