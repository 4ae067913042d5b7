"""The driver ``ascend``: the NPUs of the machine, by libdcmi.so."""
