"""What the operating system gives or is asked for: processes, memory, folders, streams. It knows no fault."""
