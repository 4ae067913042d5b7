"""The node health service of NVIDIA's resiliency extension (NVRx), answered from verdicts."""
