"""Gangs: pods that are placed together or not at all. It plans on overlays; it binds and evicts nobody."""
