"""Bandits of other people, called as they are: a contract, limits, and worker processes that outlive a crash."""
