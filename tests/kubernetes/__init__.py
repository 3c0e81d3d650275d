"""A real control plane of Kubernetes on loopback, without containers: the driver `kubernetes` against what it is for.

A program of ours in place of a kubelet runs a real Connect worker for each pod. `python3 -m tests --kubernetes` builds
the control plane once (Go, about ten minutes, 3 GB of Go's own caches); without it these tests are not collected.
"""
