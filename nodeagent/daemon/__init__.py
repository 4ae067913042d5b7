"""The daemon: one asyncio loop around the pure core. It wires and times; it decides nothing."""
