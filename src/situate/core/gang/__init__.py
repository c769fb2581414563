"""Gangs: pods that are placed together or not at all. This plans on overlays; it binds and evicts nothing."""
