"""Keys and certificates of a cluster: the authority, its rotation, revocation, and the key of service accounts."""
