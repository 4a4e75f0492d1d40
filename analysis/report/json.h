// What `--json` prints: the command line contract. schema_version stands first in every object,
// absent is null, culprits is a list.
#pragma once

#include "analysis/report/report.h"
#include "harness/wire/json.h"

namespace shakedown::report {

Json RunJson(const RunVerdict& run);
// {schema_version, verdict, dirty, runs, unstable, counts, spread, wall_ms}
Json RepeatJson(const RepeatResult& repeat);
// {schema_version, suite, verdict, dirty, runs, counts, levels, wall_ms}. counts: runs by what they
// count as, with "skipped" apart; levels: proven injections by level.
Json SuiteJson(const SuiteResult& suite);
// {schema_version, culprits, mechanism, ...}: `shakedown diagnose`.
Json DiagnosisJson(const Diagnosis& diagnosis);

}  // namespace shakedown::report
