"""Other people's logs: who is served how often and earns what, from files of any size.

sources     files and tables, as one relation of DuckDB
columns     which column is what, by name or by guess
statistics  arms x (rounds, sum, sum of squares, first and last time), in one pass
faults      what is wrong with rows, counted, with the first of each kind
owners      a second file that says whose arm it is
cache       the statistics beside the log, found again by its content
log         the log as it is used afterwards
"""

from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.reading import read_log

__all__ = ["Log", "LoggedArm", "read_log"]
