"""The page: a cluster live in a browser. A client of an API server, with the credentials of whoever is logged in."""
