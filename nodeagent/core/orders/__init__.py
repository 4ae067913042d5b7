"""What people order: dispatched by verb, and answered."""
