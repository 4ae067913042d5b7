"""Emulated GPUs."""
