"""Reaching a cluster: its connection, and the resources that it serves."""
