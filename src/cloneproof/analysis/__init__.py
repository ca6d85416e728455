"""QUESTIONS: what one may ask of a mechanism in a market."""
