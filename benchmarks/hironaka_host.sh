#!/bin/sh
# A host of Hironaka's game, trained, chosen, attacked and measured:
#
#     sh benchmarks/hironaka_host.sh FOLDER MINUTES [--set SECTION.KEY=VALUE ...]
#
# 1. trains host and agent together for so many minutes (of the configuration, changed as the rest says);
# 2. chooses the best host and the best agent of the run, and measures them again from other starts;
# 3. trains an agent for as long again, half of whose games are against that host as it is, which does not learn;
# 4. measures the host and Zeillinger's against all agents, and the host with search.
#
# GAMES (5000) games a pair, CONFIG (hironaka3; hironaka3_gpu for a large GPU), TENGEN ("tengen") the command.
set -eu
folder=$1 minutes=$2
shift 2
games=${GAMES:-5000}
tengen=${TENGEN:-tengen}
config=${CONFIG:-hironaka3}

$tengen run "$config" --base "$folder/host" --set goal.minutes="$minutes" "$@"
$tengen rho "$folder/host" --select --games "$games" > "$folder/select.txt"
cat "$folder/select.txt"
best=$(sed -n 's/^best host: //p' "$folder/select.txt")
resisting=$(sed -n 's/^best agent: //p' "$folder/select.txt")

$tengen run "$config" --base "$folder/agent" --set run.name=resist --set goal.minutes="$minutes" \
    --set "selfplay.opponents=[\"host=$best:0.5\"]" "$@"
{
    $tengen rho "$best" zeillinger --agents random first last "$resisting" "$folder/agent" --games "$games" --seed 2
    $tengen rho "$best" --agents random first last --simulations 64 --games "$games" --seed 2
} > "$folder/rho.txt"
cat "$folder/rho.txt"
