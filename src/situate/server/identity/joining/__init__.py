"""How a node gets its own certificate: one-time tokens, and the signing of certificate requests."""
