"""Sources: what each one observes, and the inputs that follow from what its workers report."""
