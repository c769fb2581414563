"""The cluster as columns. `Cluster` is the only writer; everybody else reads a `View`."""
