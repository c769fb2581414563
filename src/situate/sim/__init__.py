"""A virtual world for the scheduler: virtual time, hollow nodes, and faults drawn from a seed.

Everything in a world follows from its seed. Nothing here reads a clock or has a random source of its own, and no run
sleeps: ten minutes of the world take a second or two.
"""
