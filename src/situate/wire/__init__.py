"""Bytes to objects and back. Opens nothing: whoever has a file or a connection passes its bytes in."""
