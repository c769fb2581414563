"""What if: a snapshot of a cluster, pods that come and go, and one or several configurations to place them by.

Time is virtual and jumps; nothing fails here, and nobody's rules are broken on purpose: that is the rest of `sim`.
Nothing here opens a file, reads a clock or prints. The same input gives the same figures.
"""
