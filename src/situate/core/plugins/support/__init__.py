"""What several plugins share, and what wraps a plugin. Nothing here is a plugin."""
