"""The kinds of metrics.k8s.io."""
