"""Numbers that the UCB kernels look up: tables over rounds, exact indices, reward tapes."""
