"""The processes of a run: begun, signalled, reaped, found in /proc."""
