"""Sweeps: grids of markets, mechanisms and questions, and a store of their results."""
