"""Search for copies: arms of a log that look like one item, with false discoveries controlled."""
