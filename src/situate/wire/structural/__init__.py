"""Structural schemas of custom resources: what an OpenAPI schema does to an object.

`schema` reads a schema once; `pruning`, `defaulting`, `checks`, `list_types` and `embedded` apply it to an object in
decoded JSON; `merging` derives how patches merge it. Pure: nothing here knows what a CustomResourceDefinition is.
"""
