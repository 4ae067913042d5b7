"""A node with accelerators on a machine that has none: C libraries with the vendors' interface, and their
control.

Nothing in the daemon imports it, and no driver knows that it calls one of these libraries.
"""
