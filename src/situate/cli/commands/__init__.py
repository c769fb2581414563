"""One file or package for each command."""
