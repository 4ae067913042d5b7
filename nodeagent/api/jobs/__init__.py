"""The socket for supervisors of jobs: who connects, what they report, and what is wanted of their jobs."""
