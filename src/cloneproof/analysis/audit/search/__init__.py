"""The search for deviations that pay: exact, sampled, and deviations other than copies."""
