"""Why a command failed: the kind of its failure, and its signature. It reads no file."""
