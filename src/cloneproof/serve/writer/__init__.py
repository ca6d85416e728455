"""From a call to a durable entry: commands, grouped, done on the markets, and written in one transaction."""
