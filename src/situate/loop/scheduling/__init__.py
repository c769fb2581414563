"""Carrying out what an engine decides: one performer, its lanes of work, and the port through which it writes."""
