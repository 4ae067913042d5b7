"""The node's management controller (BMC): the faults that it shows, and the log of events that it keeps."""
