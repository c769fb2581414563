"""The controllers in the server's own process: they read from the registry and write to it, without HTTP."""
