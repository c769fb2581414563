"""Who asks, and whether they may: certificates, tokens, RBAC, nodes kept to themselves, reviews and the audit log.

Nothing here speaks HTTP. `Identity` (identity.py) is what a request passes through: authenticate, impersonate,
authorize, and afterwards the audit log. Everything else is reached through it, or stands alone.
"""
