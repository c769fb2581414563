"""The table of messages, one module a group."""
