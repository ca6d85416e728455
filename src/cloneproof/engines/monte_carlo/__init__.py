"""Monte Carlo: compiled kernels over chunks of runs."""
