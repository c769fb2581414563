"""What is worked out when somebody asks, and kept nowhere: what happened to placements, and how things stand.

All of it is derived from objects and the store's log. Nothing here writes, and nothing here is on a bind's way: who
asks waits for the work, which is done a piece at a time, and everybody else goes on in between.
"""
