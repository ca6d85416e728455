"""Figures with one look: styles, curves, bars, grids, labels, and the figures of audits."""
