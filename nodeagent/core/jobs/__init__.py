"""Supervised jobs: asked to stop, held until their chips are well, and run again in place."""
