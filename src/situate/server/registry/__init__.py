"""Objects over a store: validated, admitted, converted, cached, watched. The API without HTTP.

Start with `registry` (the methods of the API). One module each for `create`, `update`, `patch`, `delete`, `list` and
`watch`; `transaction` commits a write and retries conflicts. Reads come from `cache`, which has a `resource_cache` for
each resource; `watchers` sends changes to watches. `stored_object`, `codec`, `conversion` and `keys` are the stored
form. `ports` is where admission and transaction extensions plug in. The registry writes by compare-and-swap only, and
remembers nothing that the store does not hold.
"""
