"""What a poll reads of a GPU, one file for each part of it."""
