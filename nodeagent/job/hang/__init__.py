"""Finds out whether a run stands still, from samples of its processes and chips and from its beats.

Pure: no file, no clock. It stops nothing; what it finds is a ``model.Hung``, and the session decides.
"""
