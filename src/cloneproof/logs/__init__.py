"""Logs of a platform: arms with their rewards, from files of any size, and what they answer."""
