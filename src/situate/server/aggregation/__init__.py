"""Aggregated APIs: groups and versions that other API servers serve, behind Services, as their APIServices say."""
