"""Reports: figures in one style, and self-contained pages."""
