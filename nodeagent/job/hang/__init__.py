"""Finds out whether a run hangs, from samples of its processes and chips and from its beats.

Pure: no file, no clock. It stops nothing; it returns ``Hung`` inputs, and the session decides.
"""
