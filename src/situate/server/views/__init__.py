"""Resources that are computed when read, and stored nowhere: summaries and placement events."""
