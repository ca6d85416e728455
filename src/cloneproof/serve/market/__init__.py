"""One market: its terms, the entries of its ledger, and what can happen in it."""
