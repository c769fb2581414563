"""The kinds of apps/v1."""
