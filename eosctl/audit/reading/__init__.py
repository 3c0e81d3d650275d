"""What is read of the logs: where windows lie, what is there, and a second look before anything is missing."""
