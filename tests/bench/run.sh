#!/usr/bin/env bash
# Benchmarks that run whole scenarios: ./dev bench calls this with the build folder.
# SHAKEDOWN_BENCH_REPEAT: how often rank_killed is repeated (default 200, about 12 minutes).
set -euo pipefail
build=${1:?usage: run.sh BUILD_FOLDER}
if [[ ! -x $build/shakedown-trainer ]]; then
  echo "without LibTorch there is no job to measure; left out: scenarios.py" >&2
  exit 0
fi
exec python3 "$(dirname "${BASH_SOURCE[0]}")/scenarios.py" "$build"
