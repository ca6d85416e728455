"""What pays: gains of deviations, audits, equilibria."""
