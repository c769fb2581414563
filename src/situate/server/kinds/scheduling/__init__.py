"""The kinds of scheduling.k8s.io and of scheduling.x-k8s.io."""
