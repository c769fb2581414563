"""Encryption of stored objects, as kube-apiserver configures it: the store and its backups never see their text."""
