"""The access to the API: sockets, identities and roles of callers, and limits on what they use."""
