"""Which entries of a table are one item, and how often such a finding is wrong."""

from typing import Final

FALSE_SHARE: Final = 0.05  # of the pairs named, on average, unless somebody asks for another
