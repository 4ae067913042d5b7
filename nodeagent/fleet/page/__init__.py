"""The page of ``nodeagent fleet --listen``: the nodes by verdict, live, for people without Grafana.

It shows what the follower knows, and asks a node why a device has its verdict. It takes no order: nothing
that a browser sends changes a node, this process or a file.
"""
