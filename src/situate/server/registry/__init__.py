"""The API without HTTP: objects over a store, as Kubernetes has them.

`registry.Registry` is what everybody calls. It decides what may be written and how it is kept, answers reads from a
`cache.Cache` that follows the store, and writes by compare-and-swap alone. It knows nothing of connections, tables of
columns or permissions, and it does not remember anything that the store does not hold.
"""
