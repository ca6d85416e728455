"""Other people's logs: who is served how often and earns what, from files of any size, and what that answers."""
