"""Whether a caller may do what it asks: RBAC, the node authorizer, and the admission plugins about rights."""
