"""Why a command failed: the sort of its failure, and its signature. It reads no file."""
