#!/bin/bash
# A run of Tengen on several nodes of a Slurm cluster.
#
#     sbatch examples/cluster/slurm.sh go9 runs/go9                 # configuration, run directory
#     sbatch examples/cluster/slurm.sh go9 runs/go9 --set goal.minutes=600
#     tail -f tengen-JOB.log                                        # and: tengen status runs/go9
#     scancel --batch --signal=TERM JOB                             # stop: writes everything, then ends the job
#
# The first node has the learner and the run directory; the others need no shared disk, only the same Python environment.
# Five minutes before its time is over the job stops by itself and is queued again. The same command goes on, too.
#SBATCH --job-name=tengen
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=4
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

set -euo pipefail
if [ $# -lt 2 ]; then
    echo "usage: sbatch slurm.sh CONFIG RUN [options of tengen run]" >&2
    exit 2
fi
config=$1 base=$2
shift 2

# Load modules and activate your environment here, so that `python`, `ray` and `tengen` are found on all nodes:
# source "$HOME/tengen/.venv/bin/activate"

# All nodes of the job need the same token, and jobs of others on these machines must not have it.
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(32))")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
read -r ip _ <<<"$(hostname --ip-address)"
address=$ip:$((20000 + SLURM_JOB_ID % 20000)) # its own port, because a node may run several jobs
node=(--num-cpus "${SLURM_CPUS_PER_TASK:-1}" --disable-usage-stats --block)

pids=()
finish() {
    for pid in ${pids[@]+"${pids[@]}"}; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "/tmp/ray-$SLURM_JOB_ID"
}
trap finish EXIT

# This script runs on the first node of the job.
ray start --head --node-ip-address "$ip" --port "${address##*:}" --include-dashboard=false \
    --temp-dir "/tmp/ray-$SLURM_JOB_ID" "${node[@]}" &
pids+=($!)
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    others=$((SLURM_JOB_NUM_NODES - 1))
    # Since Slurm 22.05, srun gives tasks one core each unless it is told again.
    srun --nodes="$others" --ntasks="$others" --exclude="$head" --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" \
        ray start --address "$address" "${node[@]}" &
    pids+=($!)
fi

# The shares of the GPUs depend on how many there are, so all nodes must have joined before the run starts.
python - "$address" "$SLURM_JOB_NUM_NODES" <<'EOF'
import socket, sys, time
import ray

address, wanted = sys.argv[1], int(sys.argv[2])
host, port = address.rsplit(":", 1)
end = time.monotonic() + 300
while True:
    try:
        socket.create_connection((host, int(port)), 5).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        break
    except (OSError, RuntimeError):
        if time.monotonic() > end:
            sys.exit(f"no Ray at {address} after 5 minutes")
        time.sleep(1)
while (there := sum(node["Alive"] for node in ray.nodes())) < wanted:
    if time.monotonic() > end:
        sys.exit(f"only {there} of {wanted} nodes have joined after 5 minutes")
    time.sleep(1)
EOF

tengen run "$config" --base "$base" --mode cluster --address "$address" "$@" &
run=$!
stopped=
trap 'stopped=stop; kill -TERM $run' TERM INT
trap 'stopped=requeue; kill -TERM $run' USR1
code=0
while kill -0 $run 2>/dev/null; do # a signal interrupts `wait`
    code=0
    wait $run || code=$?
done
if [ "$stopped" = requeue ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
