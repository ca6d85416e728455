"""Fixed seeds for every property test, so that a failure can be had again."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fixed")
