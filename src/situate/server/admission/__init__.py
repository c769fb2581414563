"""Admission plugins, each with one concern. They change or reject a write, and write nothing themselves."""
