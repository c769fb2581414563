"""The scheduler in the server's own process: fed by the store, binding through the registry, without HTTP.

    store ──► feed ──► drive(engine) ──► performer ──► registry, binder
                          ▲                  │
                          └ what came of it ─┘

It has no rights that a scheduler elsewhere would not have: its binds pass the same checks, in the same transaction.
"""
