"""The vendor's own libdcmi, from its source, held against the emulator's: ``./dev compare-dcmi SOURCE``."""
