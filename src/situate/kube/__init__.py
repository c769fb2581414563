"""A real Kubernetes cluster: what happens there comes in as changes, and effects are carried out there."""
