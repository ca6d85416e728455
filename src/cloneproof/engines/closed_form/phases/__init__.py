"""The phases of explore-then-commit: rounds, exploration, commitment, the score of a trial, the award."""
