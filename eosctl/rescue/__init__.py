"""`rescue`: a connector whose fencing fails."""
