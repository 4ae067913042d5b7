"""The tables as the core uses them: rows, rules, codes, and how a code without a row is classified."""
