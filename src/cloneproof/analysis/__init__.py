"""Questions about a mechanism in a market."""
