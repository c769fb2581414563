"""The kinds of batch/v1."""
