"""The kinds of authorization.k8s.io/v1."""
