"""Devices in simulated worlds: drivers with their slices, claims, who writes them, and checkers."""
