"""From files and tables to exact statistics of arms, in one pass by DuckDB.

sources, headers   files and tables, as one relation
columns, owners    which column is what, by name or by guess; whose arm it is
statistics         arms x (rounds, sum, sum of squares, first and last time)
few_rewards        rows counted by reward first, where that is a gain
fast               a quicker way through large plain CSV files
propensities       what a backtest needs besides
faults             what is wrong with rows, counted, with the first of each kind
cache              the statistics beside the log, found again by its content
reading            `read_log`
"""
