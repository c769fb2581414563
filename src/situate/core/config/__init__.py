"""KubeSchedulerConfiguration v1: its types, defaults, merging of plugin sets and validation.

Values are frozen and every function returns new ones. Nothing here reads a file (that is `wire.config`) or knows what
a plugin does. The plugins and their arguments come from `core.plugins.table`.

`decode` turns plain mappings into types, `with_defaults` fills in defaults, `validate` returns the problems, `resolve`
returns each profile's plugins in the order in which they run.
"""
