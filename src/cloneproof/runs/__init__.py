"""Many runs: a job as arrays, kernels, the sampler, statistics and estimates."""
