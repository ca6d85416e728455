"""What several rows compute and draw: attacks, cases, trials, figures."""
