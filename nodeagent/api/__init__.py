"""The outlets: gRPC, metrics and journal. They show what was committed and decide nothing."""
