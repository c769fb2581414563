"""Tests on a real cluster; README.md says how they are made.

A package of its own, and not merely a folder: the official client, which `official_client.py` runs in a process of its
own, is called `kubernetes` too, and would else be found first.
"""
