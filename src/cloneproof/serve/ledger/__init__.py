"""The ledger: its entries, the chain of hashes, and the terms of a market."""
