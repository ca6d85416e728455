from functools import partial

from cloneproof.reproduce.findings import Row
from planted_rows import planted

ROW = Row(2, "Row 2", "a claim", partial(planted, 2))
