"""Bearer tokens: those of users, in a file of hashes, and the signed ones of service accounts."""
