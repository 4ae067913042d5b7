"""The socket for supervisors of jobs: who they are, what they say, and what is wanted of them."""
