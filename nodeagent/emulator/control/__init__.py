"""The control socket of an emulated node: its server, and the requests that it takes."""
