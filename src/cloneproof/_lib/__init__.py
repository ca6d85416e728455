"""Small things that every room needs."""
