"""Kubernetes' API over a store: what is stored, who may change it and how, and the bind that cannot overcommit.

`registry` is the API without HTTP, for callers in the same process; `http` puts it on the network. Nothing here
decides where a pod goes.
"""
