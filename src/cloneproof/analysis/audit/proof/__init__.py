"""Why no copies can pay: theorems, a ceiling on gains, and what a search covers."""
