"""The cluster as columns. Only `Cluster` writes them; all others read a `View`."""
