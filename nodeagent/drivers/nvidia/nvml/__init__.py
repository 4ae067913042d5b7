"""NVML as the driver reads it: the library, its calls and field values, and the baseline of a GPU. It judges
nothing.
"""
