"""The plugins, one file each. `table` is the list of them; importing one plugin does not import the others."""
