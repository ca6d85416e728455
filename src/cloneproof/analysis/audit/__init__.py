"""The audit: can an agent profit from registering copies; by how much, with which copies, against whom, how sure."""
