"""The rights that a group needs, compared with those that brokers grant."""
