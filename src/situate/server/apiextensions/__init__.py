"""Custom kinds: what CustomResourceDefinitions define, served like the kinds of this server.

`definition` turns a definition into resources, each with a `CustomVersion`: `decoding`, `strategy`, `stored_form`,
`columns` and the merge schema of one version. `served` keeps the set of them that the watch cache implies, so that all
servers on one store serve the same. `names` decides the conditions of a definition, and `controller` writes them and
removes the objects of a deleted definition.
"""
