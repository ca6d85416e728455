"""What is expected: by a law, a small tree, or runs."""
