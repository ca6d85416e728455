#!/bin/bash
#SBATCH --job-name=cloneproof --ntasks=64 --cpus-per-task=1 --mem-per-cpu=2G --time=08:00:00
source "$HOME/cloneproof-env/bin/activate"
export NUMBA_CACHE_DIR="$SCRATCH/numba"               # kernels are compiled once, not once a node
address="tcp://$(hostname):8786"
dask scheduler --port 8786 --no-dashboard & scheduler=$!
srun --overlap dask worker "$address" --nthreads 1 --no-dashboard --local-directory "${TMPDIR:-/tmp}" & workers=$!
cloneproof sweep grid.toml --store "$SCRATCH/results" --cluster "$address" --output table.csv
status=$?
kill $workers $scheduler
exit $status
