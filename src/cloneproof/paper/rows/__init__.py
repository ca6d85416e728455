"""One file a row: see the package above for how to add one."""
