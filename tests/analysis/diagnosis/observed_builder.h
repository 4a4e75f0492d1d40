// What an operator would have seen of a small job, in memory: for tests of detectors.
#pragma once

#include <string>
#include <vector>

#include "analysis/evidence/observed.h"

namespace shakedown::test_support {

// Times are milliseconds since the run's first record. Attempt 0 begins at 100.
class ObservedBuilder {
 public:
  explicit ObservedBuilder(int ranks);

  ObservedBuilder& Attempt(int attempt, double ms);
  // A page of a rank: where its main thread stands, and how many collectives it entered and handed
  // over.
  ObservedBuilder& Page(int attempt, int rank, double ms, const std::string& point, int64_t step,
                        int64_t entered, int64_t enqueued);
  ObservedBuilder& WorkerPage(int attempt, int rank, int worker, double ms,
                              const std::string& point, int64_t batch);
  // `how`: "SIGKILL" or "65". `by`: itself, launcher, or empty for no record of the launcher's.
  ObservedBuilder& Exit(int attempt, int rank, double ms, const std::string& how,
                        const std::string& by, const std::string& source = "pidfd");
  ObservedBuilder& Line(int attempt, int rank, double ms, const std::string& level,
                        const std::string& event, const Json& fields = Json::object());
  ObservedBuilder& LauncherLine(int attempt, double ms, const std::string& level,
                                const std::string& event, const Json& fields = Json::object());
  ObservedBuilder& Printed(int attempt, int rank, const std::string& text);
  ObservedBuilder& NoProgress(double ms);
  ObservedBuilder& Stack(int attempt, int rank, double ms, const std::string& text);
  ObservedBuilder& Event(const std::string& name, double ms, const Json& fields);
  ObservedBuilder& JobExit(double ms, int code = 0);
  ObservedBuilder& RunEnded(double ms, const std::string& how = "completed");

  ObservedEvidence Build() const;

 private:
  AttemptEvidence& attempt(int k);
  ProcessEvidence& rank(int attempt, int r);

  int ranks_;
  ObservedEvidence evidence_;
};

// A healthy job: every rank passes steps 1 to 60 and ends with 0. The culprit of the others breaks
// it in the usual way; `rank` is the culprit's.
ObservedBuilder Healthy(int ranks);
ObservedBuilder RankKilled(int ranks, int rank);
ObservedBuilder RankNotJoined(int ranks, int rank);  // collective timeout of 5 s, then a restart
ObservedBuilder HangWatchdog(int ranks, int rank);   // the launcher's watchdog of 1 s ends it
ObservedBuilder NeverReturns(int ranks, int rank);   // contributed, the call does not come back
ObservedBuilder DiskFull(int ranks, int rank);       // a failed save; training goes on
ObservedBuilder SlowWorker(int ranks, int rank, int worker);
ObservedBuilder OutOfMemory(int ranks, int rank);  // caught; the micro-batch is split

}  // namespace shakedown::test_support
