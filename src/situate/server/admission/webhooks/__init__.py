"""Admission webhooks: servers of users that are asked about requests, and may change or refuse them."""
