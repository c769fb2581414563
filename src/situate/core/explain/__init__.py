"""Why a pod is where it is, or nowhere, and what would change that.

Asks the engine's own questions and reads its answers; it decides nothing by itself, and nothing else in the core knows
of it. What it offers was tried first, on the cluster that it was handed, which is left as it was found.
"""
