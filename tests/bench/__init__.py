"""The budgets as figures: each benchmark measures, prints, and judges nothing."""
