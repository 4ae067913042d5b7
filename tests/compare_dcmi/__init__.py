"""The vendor's own libdcmi, built from its source, held against the emulator's: ``./dev compare-dcmi SOURCE``."""
