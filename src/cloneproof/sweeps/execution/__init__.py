"""Where and in which order the tasks of a sweep run."""
