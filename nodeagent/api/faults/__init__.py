"""FaultService: the published state, the stored events and the stream of new ones."""
