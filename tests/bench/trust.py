#!/usr/bin/env python3
"""How far a verdict can be trusted: planted bugs, killed controllers, and the same scenario many times.

usage: trust.py BUILD_FOLDER [--kills N] [--controls N] [--repeats N]

Prints a table: what, target, measured, with which command. Exit status 1 when a count misses its target.
With its defaults it takes about three hours; the tests of the label "trust" are the same with small counts.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SMOKE = ("control", "rank_killed", "collective_timeout", "hang_watchdog", "disk_full", "disk_full_killed",
         "slow_data_worker", "out_of_memory")


def gtest(build, program, pattern="*", **environment):
    """Passed and run tests of a GoogleTest program; what it prints goes on to stderr."""
    done = subprocess.run([build / program, f"--gtest_filter={pattern}"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **environment}, check=False)
    ran = re.search(r"\[=+\] (\d+) tests? from .* ran", done.stdout)
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", done.stdout)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
    return int(passed.group(1)) if passed else 0, int(ran.group(1)) if ran else 0


def repeat(build, scenario, times, out):
    """Verdicts of so many runs, and how many of them raised an alarm or a time alarm."""
    verdicts, alarms = {}, 0
    for i in range(times):
        done = subprocess.run([build / "shakedown", "run", scenario, "--out", out, "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        run = json.loads(done.stdout)
        key = run["verdict"] if run["as_expected"] else f"{run['verdict']}: {run['not_as_expected']}"
        verdicts[key] = verdicts.get(key, 0) + 1
        alarms += any(c["check"] == "failure_logged" and c["status"] == "FAIL" for c in run["checks"])
        print(f"\r{scenario} {i + 1}/{times} {verdicts} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return verdicts, alarms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--controls", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    build, rows = options.build.resolve(), []

    def count(what, good, of, command):
        rows.append((what, f"{of} of {of}", f"{good} of {of}", command))
        return good == of and of > 0

    ok = True
    good, of = gtest(build, "tests/e2e/defects_test", "*PlantedDefect.*")
    ok &= count("planted bugs caught for the stated reason", good, of, "tests/e2e/defects_test")
    good, of = gtest(build, "tests/contract/evidence_mutation_test", "*EveryFault*")
    ok &= count("faults that did not act as planned: INVALID, each in all ways", good, of,
                "tests/contract/evidence_mutation_test")
    good, of = gtest(build, "tests/contract/evidence_mutation_test", "-*EveryFault*")
    ok &= count("groups of spoiled evidence that raise no verdict", good, of,
                "tests/contract/evidence_mutation_test")
    good, of = gtest(build, "tests/e2e/killed_harness_test", SHAKEDOWN_TRUST_KILLS=str(options.kills))
    ok &= count(f"scenarios of which {options.kills} killed runs left nothing and passed never", good, of,
                f"SHAKEDOWN_TRUST_KILLS={options.kills} tests/e2e/killed_harness_test")
    with tempfile.TemporaryDirectory(prefix="shakedown-trust-") as out:
        for scenario in SMOKE:
            times = options.controls if scenario == "control" else options.repeats
            verdicts, alarms = repeat(build, scenario, times, out)
            passed = verdicts.get("PASS", 0)
            ok &= count(f"{scenario}: PASS as expected", passed, times, f"shakedown run {scenario}, so often")
            if scenario == "control":
                ok &= count("control: no alarm", times - alarms, times, "shakedown run control, so often")
            for verdict, times_seen in verdicts.items():
                if verdict != "PASS":
                    rows.append(("", "", f"{times_seen} x {verdict}", ""))
    width = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, width)).rstrip())
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
