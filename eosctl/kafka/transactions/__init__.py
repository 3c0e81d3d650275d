"""Requests to coordinators: transactions and fencing."""
