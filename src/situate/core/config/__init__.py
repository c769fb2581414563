"""KubeSchedulerConfiguration v1: its types, defaults, merging of plugin sets, validation, and what a profile comes to.

Values are frozen and every function returns new ones. Nothing here reads a file (that is `wire.config`) or knows what
a plugin does: plugins are names, weights and arguments.

`decode` turns plain mappings into types, `with_defaults` fills them in, `validate` says what is wrong, `resolve` gives
each profile's plugins in the order in which they run.
"""
