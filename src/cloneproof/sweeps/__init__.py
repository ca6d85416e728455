"""MANY QUESTIONS: grids of them, a store of what is known, and execution on this machine or on a cluster."""
