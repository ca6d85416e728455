"""Black boxes: other people's bandits, with a contract, time limits, and worker processes that survive a crash."""
