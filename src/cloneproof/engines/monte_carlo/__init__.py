"""Monte Carlo at machine speed: compiled kernels over chunks of runs."""
