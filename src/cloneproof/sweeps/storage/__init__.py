"""The store of a sweep: chunks on disk, what is missing, what a store has."""
