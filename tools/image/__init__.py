"""Builds the scheduler's container image from Debian's packages and our wheel: no daemon, no registry, no root.

`python -m tools.image` writes an OCI image layout as one archive. The same packages and the same sources give the same
bytes.
"""
