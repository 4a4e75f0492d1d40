#!/usr/bin/env python3
"""The numbers that whole scenarios give: precision of a fault, time to recover, what Shakedown costs.

usage: scenarios.py BUILD_FOLDER [--repeat N]

Prints a table: what, target, measured, runs. Times are medians of this machine at this moment; the
worst stands beside them. Exit status 1 when a count (not a time) misses its target.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def shakedown(build, *arguments):
    begin = time.monotonic()
    done = subprocess.run([build / "shakedown", *arguments, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout), (time.monotonic() - begin) * 1e3


def median_and_worst(values):
    values = [v for v in values if v is not None]
    if not values:
        return "-", None
    return f"{statistics.median(values):.0f} (worst {max(values):.0f})", statistics.median(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=int(os.environ.get("SHAKEDOWN_BENCH_REPEAT", "200")))
    options = parser.parse_args()
    rows, broken = [], False
    with tempfile.TemporaryDirectory(prefix="shakedown-bench-") as out:
        shakedown(options.build, "run", "control", "--out", out)  # makes the reference
        suite, suite_ms = shakedown(options.build, "suite", "smoke", "--out", out)
        rows.append(("suite smoke, once built and referenced", "<= 90 s, PASS",
                     f"{suite_ms / 1e3:.1f} s, {suite['verdict']}", "1"))
        broken |= suite["verdict"] != "PASS"

        runs, overhead, left = [], [], 0
        for i in range(options.repeat):
            run, wall_ms = shakedown(options.build, "run", "rank_killed", "--out", out)
            runs.append(run)
            overhead.append(wall_ms - run["times"]["wall_ms"])
            left += run["dirty"]
            print(f"\r{i + 1}/{options.repeat} {run['verdict']}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    n = len(runs)
    exact = sum(1 for r in runs if len(r["injections"]) == 1 and r["injections"][0]["proven"]
                and r["injections"][0]["rank"] == 1 and r["injections"][0]["step"] == 39
                and r["injections"][0]["point"] == "collective.enter")
    passed = sum(1 for r in runs if r["verdict"] == "PASS" and r["as_expected"])
    clean = sum(1 for r in runs if not r["dirty"]
                and any(c["check"] == "nothing_left" and c["status"] == "PASS" for c in r["checks"]))
    named = sum(1 for r in runs if r["quality"]["diagnosis_right"])
    for what, count in (("exact (rank, step, point, proven)", exact), ("PASS as expected", passed),
                        ("nothing left", clean), ("diagnosis right", named)):
        rows.append((f"rank_killed: {what}", f"{n} of {n}", f"{count} of {n}", str(n)))
        broken |= count != n
    holds, _ = median_and_worst([r["injections"][0]["hold_ms"] for r in runs if r["injections"]])
    recover, _ = median_and_worst([r["times"]["first_new_step_ms"] for r in runs])
    noticed, _ = median_and_worst([r["quality"]["noticed_ms"] for r in runs])
    detected, _ = median_and_worst([r["times"]["detected_ms"] for r in runs])
    cost, _ = median_and_worst(overhead)
    rows += [("hold, ms", "<= 20", holds, str(n)),
             ("kill to first new step on all ranks, ms", "<= 1000", recover, str(n)),
             ("kill to the job's own report, ms", "<= 1000", detected, str(n)),
             ("kill to Shakedown's notice, ms", "-", noticed, str(n)),
             ("Shakedown's own time beyond the job's, ms", "<= 600", cost, str(n))]
    width = [max(len(r[i]) for r in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, width)).rstrip())
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
