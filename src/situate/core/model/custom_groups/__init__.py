"""The PodGroup kinds that other schedulers install as custom resources: a file for each, and `table` lists them."""
