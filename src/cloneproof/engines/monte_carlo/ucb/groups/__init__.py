"""Groups of candidates with equal statistics, for levels of many arms."""
