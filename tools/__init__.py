"""What make runs to build the documentation, pictures and releases. Nothing here is installed."""
