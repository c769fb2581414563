"""What-if simulation: a snapshot of a cluster, pods that come and go, and one or several configurations to compare.

Time is virtual, and there are no faults: fault injection is the rest of `sim`. Nothing here opens a file, reads a clock
or prints. The same input gives the same figures.
"""
