"""Admission policies: what users say in CEL about requests and objects."""
