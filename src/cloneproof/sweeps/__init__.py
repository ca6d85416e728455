"""MANY QUESTIONS: grids of them, and a store of what is known."""
