"""The kinds of core/v1."""
