"""The scheduler in the server's own process: fed by the store, binding through the registry, without HTTP.

Its binds pass the same checks, in the same transaction, as those of a scheduler elsewhere.
"""
