"""The live screen: keys, layout, and the command on a terminal."""
