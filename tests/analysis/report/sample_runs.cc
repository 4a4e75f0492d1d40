#include "tests/analysis/report/sample_runs.h"

namespace shakedown::test_support {
namespace {

CheckResult Check(const char* name, CheckStatus status, const char* reason) {
  CheckResult result;
  result.check = name;
  result.finding.status = status;
  result.finding.reason = reason;
  result.finding.compared = 3;
  return result;
}

Culprit Rank(int rank) { return {"rank", rank, std::nullopt, ""}; }

}  // namespace

RunVerdict ControlRun() {
  RunVerdict run;
  run.scenario = "control";
  run.verdict = Verdict::kPass;
  run.as_expected = true;
  run.reason = "11 promises kept";
  run.run_dir = "/runs/control-1";
  run.diagnosis.mechanism = "none";
  run.diagnosis.confidence = 0.9;
  run.diagnosis_right = true;
  run.times.wall_ms = 2100;
  return run;
}

RunVerdict KilledRun() {
  RunVerdict run;
  run.scenario = "rank_killed";
  run.verdict = Verdict::kPass;
  run.as_expected = true;
  run.reason = "13 promises kept, 2 not applicable";
  run.run_dir = "/runs/rank_killed-20261130T194514-a1b2c3";
  run.seed = 1;
  run.plan_digest = "00112233445566778899aabbccddeeff";
  run.injections = {{"rank.kill", 1, 1, std::nullopt, 39, "collective.enter", 0, "real",
                     "pidfd_send_signal", 4.25, true}};
  run.checks = {
      Check("assumptions", CheckStatus::kPass, "38 steps on 3 ranks before the fault"),
      Check("fault_proven", CheckStatus::kPass,
            "SIGKILL at step 39, collective.enter, seen by the kernel and by rank 0, and by nobody "
            "else on the bystanders"),
      Check("detected", CheckStatus::kPass, "rank 0 wrote peer.lost after 12 ms (limit 1000 ms)"),
      Check("timeout_effective", CheckStatus::kNotApplicable, "no limit of the job had to fire"),
      Check("resume_equal", CheckStatus::kPass, "30 steps on 3 ranks equal bit for bit")};
  Diagnosis& d = run.diagnosis;
  d.culprits = {Rank(1)};
  d.mechanism = "killed";
  d.confidence = 0.9;
  d.reasons = {"rank 1 ended by SIGKILL (pidfd) (observed.jsonl:452)",
               "the launcher did not end rank 1 (by: itself) (attempt-0/launcher.jsonl:5)"};
  d.missing = {"the kernel log: an end by the host's out-of-memory killer looks the same"};
  d.cascade = {{0, 0, "exited with 65 (a peer is lost)", {"observed.jsonl", 471}},
               {0, 2, "exited with 65 (a peer is lost)", {"observed.jsonl", 466}}};
  d.chain = {
      {1110, ChainRole::kRoot, 0, 1, "rank 1 ended by SIGKILL (pidfd)", {"observed.jsonl", 452}},
      {1122.5,
       ChainRole::kCascade,
       0,
       0,
       "rank 0 peer.lost in step 39: a peer is gone: its connection broke",
       {"attempt-0/rank-0/log.jsonl", 9}},
      {1160,
       ChainRole::kTeardown,
       0,
       std::nullopt,
       "the launcher restart.scheduled: the group is started again",
       {"attempt-0/launcher.jsonl", 9}}};
  d.runbook = "rank_killed.md";
  d.isolation = "landlock";
  run.noticed_ms = 5;
  run.diagnosis_right = true;
  run.times = {12.5, std::nullopt, 612, 8, 160, 2900};
  run.attempts = {
      {0,
       10,
       1200,
       0,
       38,
       {{0, 65, "", "pidfd"}, {1, std::nullopt, "SIGKILL", "pidfd"}, {2, 65, "", "pidfd"}}},
      {1, 1250, 2900, 30, 60, {{0, 0, "", "pidfd"}, {1, 0, "", "pidfd"}, {2, 0, "", "pidfd"}}}};
  return run;
}

RunVerdict FailedRun() {
  RunVerdict run = KilledRun();
  run.scenario = "out_of_memory";
  run.verdict = Verdict::kFail;
  run.as_expected = false;
  run.not_as_expected = "the scenario expects PASS";
  run.reason = "broke resume_equal: the weights differ by 0.02, tolerance 1e-05";
  run.dirty = true;
  run.injections = {{"memory.device_oom", 1, 0, std::nullopt, 15, "forward.begin", 0, "simulated",
                     "probe", std::nullopt, true}};
  run.checks.back() = Check("resume_equal", CheckStatus::kFail,
                            "broke resume_equal: the weights differ by 0.02, tolerance 1e-05");
  run.checks.back().finding.where = {{"attempt-0/rank-0/weights-end.bin", 0},
                                     {"attempt-0/rank-0/log.jsonl", 12}};
  run.diagnosis = {};
  run.diagnosis.reasons = {"nothing that was seen says why attempt 0 ended"};
  run.diagnosis.missing = {"exit statuses of attempt 0"};
  run.diagnosis_right = false;
  run.overloaded = true;
  return run;
}

RunVerdict InvalidRun() {
  RunVerdict run = KilledRun();
  run.scenario = "hang_watchdog";
  run.verdict = Verdict::kInvalid;
  run.as_expected = false;
  run.reason = "fault_proven: step 61 was never reached";
  run.injections.front().proven = false;
  run.times = {};
  return run;
}

RunVerdict SkippedRun() {
  RunVerdict run;
  run.scenario = "disk_full";
  run.verdict = Verdict::kSkipped;
  run.reason = "no mount namespace: not root, and user namespaces are turned off";
  return run;
}

SuiteResult SampleSuite() {
  SuiteResult suite;
  suite.suite = "smoke";
  suite.verdict = Verdict::kFail;
  suite.dirty = true;
  suite.runs = {ControlRun(), KilledRun(), FailedRun(), InvalidRun(), SkippedRun()};
  suite.wall_ms = 42'000;
  return suite;
}

RepeatResult SampleRepeat() {
  RepeatResult repeat;
  repeat.runs = {KilledRun(), KilledRun(), FailedRun()};
  repeat.merged.verdict = Verdict::kFail;
  repeat.merged.unstable = true;
  repeat.merged.spread = {{"detected_ms", {{"min", 9.5}, {"median", 12.5}, {"max", 31}}},
                          {"lost_steps", {{"min", 8}, {"median", 8}, {"max", 8}}}};
  repeat.wall_ms = 9000;
  return repeat;
}

}  // namespace shakedown::test_support
