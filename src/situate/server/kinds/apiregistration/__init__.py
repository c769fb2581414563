"""The kind of apiregistration.k8s.io/v1, which is kept: the server speaks for no other API server."""
