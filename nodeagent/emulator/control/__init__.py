"""The control socket of an emulated node: the requests that it takes, and the server. No vendor's value is here."""
