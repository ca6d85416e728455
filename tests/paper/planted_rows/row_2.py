from functools import partial

from cloneproof.paper.findings import Row
from planted_rows import planted

ROW = Row(2, "Row 2", "a claim", partial(planted, 2))
