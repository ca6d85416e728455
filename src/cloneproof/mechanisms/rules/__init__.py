"""Rules, one file each. A file `name.py` with a function `name(...) -> Rule` is one."""
