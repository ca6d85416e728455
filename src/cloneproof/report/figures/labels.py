"""Direct labels that keep out of each other's way: each tries places around its points and takes the freest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

STEP = 3.0  # pixels between the points of a line that a label should not cover
NEAR, FAR = 6.0, 13.0  # points between a label and what it is about
PLACES: tuple[tuple[int, int], ...] = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
LabelPlace = tuple[tuple[float, float], tuple[int, int], float]  # a point, the side of it, how far from it
ALIGN = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}


@dataclass(frozen=True)
class Label:
    """Some words, the points of the data next to any of which they may stand (the best first), and their colour."""

    text: str
    points: Sequence[tuple[float, float]]
    colour: str
    bold: bool = False


def place_labels(figure: Figure, axes: Axes, labels: Sequence[Label]) -> None:
    """Write the labels in this order, each where it covers least; to be called when everything else is drawn."""
    renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()  # settles the layout, and so where everything is
    inside, lines = axes.get_window_extent(renderer), _points_of_lines(axes)
    taken: list[Bbox] = []
    for label in labels:
        measured = _write_label(axes, label, (label.points[0], PLACES[0], NEAR))
        size = measured.get_window_extent(renderer)
        measured.remove()
        best, box = min(
            (
                (candidate, _box(axes, candidate, size.width, size.height, figure.dpi / 72))
                for candidate in _candidates(label)
            ),
            key=lambda pair: _cost(pair[1], taken, lines, inside),
        )
        _write_label(axes, label, best)
        taken.append(box)


def _candidates(label: Label) -> list[LabelPlace]:
    """Near ones first: of equally free places the first is taken."""
    return [(at, place, distance) for at in label.points for distance in (NEAR, FAR) for place in PLACES]


def _box(axes: Axes, candidate: LabelPlace, width: float, height: float, pixels: float) -> Bbox:
    """What a text of that size covers there, in pixels."""
    at, (right, up), distance = candidate
    x, y = axes.transData.transform(at) + np.array([right, up]) * distance * pixels
    left = x - width * (1 - right) / 2
    bottom = y - height * (1 - up) / 2
    return Bbox.from_bounds(left, bottom, width, height)


def _write_label(axes: Axes, label: Label, candidate: LabelPlace) -> Any:  # noqa: ANN401
    """The label at that place; what looks like a formula stays the text that it is."""
    at, place, distance = candidate
    text = axes.annotate(
        label.text,
        at,
        (place[0] * distance, place[1] * distance),
        textcoords="offset points",
        ha=ALIGN[place[0]][0],
        va=ALIGN[place[1]][1],
        color=label.colour,
        weight="bold" if label.bold else "normal",
        parse_math=False,
        zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
    )
    text.set_in_layout(False)
    return text


def _cost(box: Bbox, taken: list[Bbox], lines: np.ndarray[Any, Any], inside: Bbox) -> float:
    """How much is covered: other labels most of all, then the edge of the figure, then lines."""
    x, y = lines[:, 0], lines[:, 1]
    covered = np.count_nonzero((x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1))
    outside = sum(
        max(0.0, far) for far in (inside.x0 - box.x0, box.x1 - inside.x1, inside.y0 - box.y0, box.y1 - inside.y1)
    )
    overlaps = sum(bool(box.padded(2).overlaps(other)) for other in taken)
    return 1000.0 * overlaps + 10.0 * float(outside) + float(covered)


def _points_of_lines(axes: Axes) -> np.ndarray[Any, Any]:
    """Points along every line of the axes, in pixels."""
    points = [np.empty((0, 2))]
    for line in axes.lines:
        corners = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
        points.append(corners)
        for first, last in pairwise(corners):
            count = int(min(500, np.hypot(*(last - first)) / STEP))
            if count:
                points.append(first + (last - first) * np.linspace(0, 1, count + 1)[:, None])
    return np.concatenate(points)
