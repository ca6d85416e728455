"""What would a copy earn? The audit of a live market, in a process of its own, and its route."""
