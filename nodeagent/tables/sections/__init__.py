"""One file of tables: its forms, and each section of it read into values of the catalog."""
