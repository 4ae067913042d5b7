"""The bridge to Kubernetes: what this node's faults mean for its Node, and for MindCluster's ConfigMaps.

``decide`` decides and does no I/O. ``bridge`` follows the daemon and the API server, and does it.
"""
