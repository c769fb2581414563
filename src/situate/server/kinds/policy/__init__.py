"""The kinds of policy/v1."""
