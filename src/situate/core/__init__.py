"""The scheduler itself: objects, cluster state, plugins and decisions.

Everything here is a function of its arguments. Nothing here does I/O, reads a clock, rolls dice, looks at the
environment, starts a thread or logs; whoever needs such a thing passes its result in.
"""
