"""Functions by library: one file each."""
