"""Kubernetes' objects, with only the fields that scheduling reads, and what follows from one object alone.

Values are frozen. Nothing here knows of other objects' existence (that is `core.state`), of bytes (that is `wire`), or
changes what it is given.
"""
