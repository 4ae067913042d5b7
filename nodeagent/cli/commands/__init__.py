"""The commands, one file for each, in the sections in which the help lists them."""
