"""The averages of all arms under a tournament: the highest, how many have it and which, in steps like log K.

Node 1 is the root, nodes 2 i and 2 i + 1 are below node i, and the arms are the nodes from `size` on, a power of 2.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.compiled_functions import compiled

NOBODY = -1.0  # the average of a node without arms


class AverageTree(NamedTuple):
    """Of each node: the highest average of its arms, and how many of them have it."""

    highest: FloatArray
    ties: IntArray


@compiled
def average_tree(arms):
    """A tree for as many arms."""
    size = 1
    while size < arms:
        size *= 2
    return AverageTree(np.empty(2 * size), np.empty(2 * size, np.int64))


@compiled
def clear(tree, arms):
    """All averages 0."""
    size = len(tree.highest) // 2
    for k in range(size):
        tree.highest[size + k] = 0.0 if k < arms else NOBODY
        tree.ties[size + k] = 1 if k < arms else 0
    for node in range(size - 1, 0, -1):
        join(tree, node)


@compiled
def join(tree, node):
    """A node from the two below it."""
    left, right = 2 * node, 2 * node + 1
    if tree.highest[left] > tree.highest[right]:
        tree.highest[node], tree.ties[node] = tree.highest[left], tree.ties[left]
    elif tree.highest[left] < tree.highest[right]:
        tree.highest[node], tree.ties[node] = tree.highest[right], tree.ties[right]
    else:
        tree.highest[node], tree.ties[node] = tree.highest[left], tree.ties[left] + tree.ties[right]


@compiled
def enter_average(tree, arm, average):
    """Arm `arm` has another average."""
    node = len(tree.highest) // 2 + arm
    tree.highest[node] = average
    node //= 2
    while node > 0:
        join(tree, node)
        node //= 2


@compiled
def best_arm(tree, position):
    """The arm at a position (from 0) among those of the highest average."""
    size, node = len(tree.highest) // 2, 1
    while node < size:
        node *= 2
        if tree.highest[node] != tree.highest[1]:
            node += 1
        elif position >= tree.ties[node]:
            position -= tree.ties[node]
            node += 1
    return np.int64(node - size)


@compiled
def best_of_others(tree, arm):
    """The highest average of all arms but this one."""
    node, best = len(tree.highest) // 2 + arm, NOBODY
    while node > 1:
        best = max(best, tree.highest[node ^ 1])
        node //= 2
    return best
