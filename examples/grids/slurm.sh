#!/bin/bash
#SBATCH --job-name=cloneproof --ntasks=64 --cpus-per-task=1 --mem-per-cpu=2G --time=08:00:00
# Scheduler and driver on the first node, a worker for each task. After the time limit, submit it again and it goes on.
source "$HOME/cloneproof-env/bin/activate"
export DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT=300s  # how long to wait for the scheduler to start
address="tcp://$(hostname):$((20000 + SLURM_JOB_ID % 40000))"
trap 'kill $(jobs -p)' EXIT
dask scheduler --port "${address##*:}" --no-dashboard &
srun dask worker "$address" --nthreads 1 --no-nanny --no-dashboard --local-directory "${TMPDIR:-/tmp}" &
cloneproof sweep grid.toml --store "$SCRATCH/points.jsonl" --cluster "$address" --output table.csv
