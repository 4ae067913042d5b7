"""What is done with a damaged store: the rows that are left are found, checked and put into a new file."""
