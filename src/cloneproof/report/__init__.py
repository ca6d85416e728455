"""Reports: figures with one look, and pages that need nothing but a browser."""
