"""The random numbers of runs, compiled: hashes, means, quantiles, exact sums."""
