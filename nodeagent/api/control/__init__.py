"""ControlService: the orders of operators, each audited."""
