"""Which files of the project one event runs through: ``./dev trace``."""
