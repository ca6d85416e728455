"""The paper's mechanisms that explore and then commit."""
