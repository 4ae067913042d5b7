"""NVIDIA GPUs through NVML, by the unmodified ``pynvml``."""
