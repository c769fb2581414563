"""The control plane that `situate up` and `situate server` run."""
