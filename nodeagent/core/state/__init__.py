"""All that the engine remembers: the cells, the indexes over them, their deadlines and their limits."""
