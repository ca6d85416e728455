"""What should a platform run? Mechanisms ranked for its market, compared, and put into terms for the service."""
