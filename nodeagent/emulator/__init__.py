"""A node with accelerators where there are none: C libraries with the vendors' interface, and their driver.

Nothing of the daemon imports it, and no driver knows that it talks to one of these libraries.
"""
