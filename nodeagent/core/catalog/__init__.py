"""What the tables say, as the core asks it: rows, rules, codes, and what codes without a row become."""
