"""Emulated UnifiedBus switches."""
