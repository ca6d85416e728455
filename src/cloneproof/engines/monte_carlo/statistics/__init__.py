"""What is kept of runs and what follows from it: totals, ranges, strata, confidence sequences."""
