"""Who copies: arms that look like one item, in a log with false discoveries controlled, and in a season."""
