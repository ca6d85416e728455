"""Certificates: a verdict with everything needed to check it, and a checker that shares no code with the search.

`document` reads certificates, `checker` and `scan_checker` have the mathematics, `verification` calls them, and
`writer` makes certificates of audits. Only the writer imports the search.
"""
