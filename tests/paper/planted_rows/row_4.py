from functools import partial

from cloneproof.paper.findings import Row
from planted_rows import planted

ROW = Row(4, "Row 4", "a claim", partial(planted, 4))
