#!/usr/bin/env bash
# A sweep as a Slurm job: one Ray on all its nodes for as long as the sweep lasts.
#   sbatch sweeps/cluster/slurm.sh quick --out /shared/results
#SBATCH --job-name=raybench
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --exclusive
#SBATCH --time=04:00:00
set -euo pipefail

# A token for this job only, in a folder that all nodes see and nobody else reads.
token=$(umask 077 && mktemp "$HOME/.raybench-token-XXXXXX")
trap 'rm -f "$token"' EXIT
python -c "import secrets; print(secrets.token_hex(32))" > "$token"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname -I | cut -d ' ' -f 1)
port=$((20000 + SLURM_JOB_ID % 20000))      # two jobs may share a node

srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" \
  ray symmetric-run --address "$address:$port" --min-nodes "$SLURM_JOB_NUM_NODES" \
  --num-cpus "$SLURM_CPUS_PER_TASK" -- \
  raybench run "$@" --cluster "${SLURM_CLUSTER_NAME:-slurm}"
