"""Encryption of stored objects, configured as for kube-apiserver: stores and backups contain no plain text."""
