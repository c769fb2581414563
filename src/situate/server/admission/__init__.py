"""Who has a say in what is written: an explicit chain of small checks, each of one concern.

Each is an `Admission` of the registry: it changes a new object or refuses the request. None writes anything itself.
"""
