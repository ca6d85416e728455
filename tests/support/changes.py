"""Data with one thing changed, as whoever forges a file would change it."""

import copy


def with_change(data, path, value):
    """A copy of nested dicts and lists with that value at the end of the path."""
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed
