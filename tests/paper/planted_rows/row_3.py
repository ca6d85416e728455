from functools import partial

from cloneproof.paper.findings import Row
from planted_rows import planted

ROW = Row(3, "Row 3", "a claim", partial(planted, 3))
