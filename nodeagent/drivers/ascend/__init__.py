"""Huawei Ascend: the NPUs by libdcmi.so, the UnifiedBus switches of an A3 by liblingqu-dcmi.so.

``npu.driver`` is the driver ``ascend``, ``unifiedbus.driver`` the driver ``unifiedbus``; each runs in a
worker of its own.
"""
