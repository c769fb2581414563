"""The API server as a client of kubelets: how it reaches them, and what it asks them for."""
