"""A virtual world to run the scheduler in: time that jumps, machines that are hollow, and faults drawn from a seed.

Everything in a world follows from its seed. Nothing here reads a clock or rolls a die of its own, and no run waits:
ten minutes of the world take a second or two.
"""
