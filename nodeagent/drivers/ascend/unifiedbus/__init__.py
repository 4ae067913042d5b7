"""The driver ``unifiedbus``: the UnifiedBus switches of an Atlas A3, by liblingqu-dcmi.so."""
