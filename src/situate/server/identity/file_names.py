"""Where the keys of a cluster are, below its directory. Imports nothing, for those who need no more than a name."""

from typing import Final

AUTHORITY: Final = "pki"
"""The folder."""
SERVER: Final = "server.pem"
"""In it: the API server's certificate and key."""
