#!/bin/bash
#SBATCH --job-name=cloneproof --nodes=1 --ntasks=1 --cpus-per-task=32 --mem-per-cpu=2G --time=08:00:00
source "$HOME/cloneproof-env/bin/activate"
cloneproof sweep grid.toml --store "$SCRATCH/results" --workers "$SLURM_CPUS_PER_TASK" --output table.csv
