"""Certificates: a verdict with everything needed to check it, and a checker that shares no code with the search.

`document` reads certificates, `checker` has the mathematics, `verification` calls it, and `writer` makes certificates
of audits. Only the writer imports the search.
"""
