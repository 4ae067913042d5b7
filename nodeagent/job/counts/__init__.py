"""What is counted over runs and placements: progress, and the file of counts. It reads no file."""
