"""State tree: every mechanism made of rules, Bernoulli and deterministic rewards, every horizon in one pass."""
