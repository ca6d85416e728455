"""Somebody's own policy."""
