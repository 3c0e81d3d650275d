"""Workers that run in Kubernetes."""
