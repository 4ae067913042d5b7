"""Huawei Ascend: the NPUs by libdcmi.so, the UnifiedBus switches of an A3 by liblingqu-dcmi.so.

``driver`` is the driver ``ascend``, ``driver`` the driver ``unifiedbus``; each runs in a worker of its own.
"""
