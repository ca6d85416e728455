"""What all engines compute with: laws of counts, a prior as points, realised means, the best mean or page, the scan."""
