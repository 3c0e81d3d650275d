"""The operation `rescue`, for a connector whose fencing fails."""
