"""On the nodes: what was bound there is made to run, and what became of it is reported. Places nothing.

A node may be hollow: its pods run on paper only, as data says they would. Thousands of those fit into one process.
"""
