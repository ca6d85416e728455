"""Which entries of a table are one item, and how often such a finding is wrong."""
