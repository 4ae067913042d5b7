"""From open conditions to verdict and handling, and the events that carry them."""
