"""The program that hosts one driver, and the threads that poll for it."""
