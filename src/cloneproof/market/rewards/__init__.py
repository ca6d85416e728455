"""Reward families, one file each. A file `name.py` with a function `name(...) -> RewardFamily` is one."""
