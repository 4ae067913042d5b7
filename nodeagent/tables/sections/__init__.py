"""What one file of tables says: its forms, and each section of it read into values of the catalog."""
