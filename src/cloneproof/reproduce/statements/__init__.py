"""Single statements of the paper as computations: what a proof's step says, and what is the case."""
