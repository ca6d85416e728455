"""The audit: whether an agent can profit from registering copies, by how much, and how sure that is."""
