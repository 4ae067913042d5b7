"""The program that does a reset as root, and the files by which the daemon asks for one."""
