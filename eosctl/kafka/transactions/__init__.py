"""Transactions and fencing, asked of coordinators."""
