"""ControlService: what operators, job hooks and other systems may order of the daemon, and its audit."""
