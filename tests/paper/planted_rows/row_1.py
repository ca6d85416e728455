from functools import partial

from cloneproof.paper.findings import Row
from planted_rows import planted

ROW = Row(1, "Row 1", "a claim", partial(planted, 1))
