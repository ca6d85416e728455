"""`cloneproof log`: a platform's own log."""
