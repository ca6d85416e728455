"""The commands that give advice: compare, recommend."""
