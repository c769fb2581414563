"""Kubernetes' objects with only the fields that scheduling reads, and functions of one object.

Values are frozen. Relations between objects are in `core.state`, bytes in `wire`.
"""
