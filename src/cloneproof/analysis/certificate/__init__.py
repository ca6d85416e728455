"""Certificates: a verdict with everything needed to check it, and a small checker that shares no code with the search.

`document` reads (every number an exact fraction), `checker` and `scan_checker` have all of the mathematics,
`verification` calls them, and `writer` makes certificates of audits; only the writer knows of the search.
"""
