"""Advice on what to run: mechanisms ranked for a market, compared, and put into terms for the service."""
