"""Pages that need nothing but a browser: the audit, the season, and their words."""
