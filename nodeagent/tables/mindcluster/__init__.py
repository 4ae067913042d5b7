"""MindCluster's own files, read as tables."""
