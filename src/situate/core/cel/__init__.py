"""CEL, the Common Expression Language, as Kubernetes evaluates it: parse, check types, evaluate, count the cost.

The package is pure and knows nothing of the rest of situate. An Environment (variables, types, functions) is data;
`device_selectors` holds the one for devices.
"""
