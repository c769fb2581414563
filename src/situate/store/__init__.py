"""A revision log over keys: compare-and-swap, consistent lists, watches without gaps, leases. Memory, SQLite or etcd.

contract.py says what a store promises. It knows bytes, and nothing of what they mean: objects are the server's.
"""
