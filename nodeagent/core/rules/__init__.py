"""The rules that tables can name, one file for each kind, and what several of them share."""
