"""Properties of a mechanism: conformance, permutation invariance, random-permutation regret, TRP."""
