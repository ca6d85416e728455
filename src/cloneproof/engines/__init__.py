"""Engines: how a market and a mechanism become numbers."""
