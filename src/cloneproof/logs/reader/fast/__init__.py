"""Quick ways through large logs that are in order; whatever is not is left to DuckDB, which says what is wrong.

headway        how far a scan is, and whether it should stop
csv_values     fields of a line in compiled code
csv_kernel     lines into the sums of arms, in compiled code
csv_blocks     files cut into blocks of whole lines
csv_scan       all of a CSV log
parquet_types  columns of Parquet files and their types
parquet_kernel codes and rewards into the sums of arms, in compiled code
parquet_scan   all of a Parquet log
"""
