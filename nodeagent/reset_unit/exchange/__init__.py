"""The files between the daemon and the reset unit: requests, results, and the record of resets."""
