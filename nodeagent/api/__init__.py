"""The API: the gRPC services and the socket of jobs. It shows what was committed and decides nothing."""
