"""Commands for jobs whose command is supervised."""
