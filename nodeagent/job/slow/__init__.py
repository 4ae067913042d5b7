"""Finds the rank that holds up its peers: from step times that ranks report, and from readings of chips.

Pure: no file, no clock. It stops nothing; it returns ``Slowed`` inputs, and the session reports them.
"""
