"""What is expected: by a law, a small tree, or runs; and whether a mechanism keeps the contract of rules."""
