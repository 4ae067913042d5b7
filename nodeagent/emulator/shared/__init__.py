"""The state file that the libraries and the control socket share."""
