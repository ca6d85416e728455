"""Reservoirs: draws from agents' arms, and their ranks."""
