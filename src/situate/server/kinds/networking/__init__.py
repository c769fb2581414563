"""networking.k8s.io: stored for clients and for controllers that others run. Nothing here forwards traffic."""
