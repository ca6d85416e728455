"""Parameters that follow from the theorems, and where a run leaves their conditions."""
