// The blind half of the evidence: what an operator of the job could have. Diagnosis reads this and
// nothing else; nothing here opens a file that knows the plan (harness/wire/run_dir.h).
//
// Everything is read once, by value, from files that are treated as untrusted: sizes are bounded,
// symbolic links are not followed, a record that cannot be read is damage and never a crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/digest.h"
#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/event.h"
#include "harness/wire/job.h"
#include "harness/wire/json.h"
#include "harness/wire/ledger.h"
#include "harness/wire/progress_page.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

// A place in the evidence. `file` is relative to the run directory; `line` counts from 1 and is 0
// where the file has no lines.
struct Where {
  std::string file;
  int line = 0;
  bool operator==(const Where&) const = default;
};

// A record or file that is there and cannot be read. A torn last record of a killed writer is none.
struct Damage {
  Where where;
  std::string what;
};

// One structured line of the job's own logs (harness/wire/log_events.h).
struct LogLine {
  int attempt = 0;
  std::optional<int> writer;  // rank that wrote it; nullopt: the launcher
  Where where;
  MonoTime t;                       // the job's word
  std::optional<MonoTime> arrived;  // the controller's; nullopt: it never saw the line arrive
  std::string level;                // INFO, WARNING, ERROR
  std::string event;
  std::optional<int> rank;  // rank that is spoken of
  std::optional<int64_t> step;
  std::string message;
  Json fields = Json::object();  // the whole object

  bool alarming() const { return level == "WARNING" || level == "ERROR"; }
  // The time to judge by: arrival where there is one.
  MonoTime when() const { return arrived.value_or(t); }
};

// `line.arrived`: the controller saw this line of this file at this time.
struct Arrival {
  MonoTime t;
  int attempt = 0;
  std::optional<int> rank;
  std::string source;  // log, stdout, stderr, launcher, launcher.stdout, launcher.stderr
  std::string file;
  int64_t line = 0;
  std::string xxh3;
};

struct LaneSample {
  std::string point;  // "" for a value that is no point
  int64_t step = 0;
  int64_t count = 0;
};

// `page.sampled`, or the page.bin that was saved (t: that of the last sample, or 0).
struct PageSample {
  MonoTime t;
  int attempt = 0;
  int rank = -1;
  std::optional<int> worker;
  int64_t incarnation = 0;
  std::map<std::string, LaneSample> lanes;  // main, autograd, writer
  int64_t last_step = 0;
  int64_t last_step_ns = 0;
  int64_t collectives_entered = 0;
  int64_t collectives_enqueued = 0;
  int64_t committed_step = 0;
  struct CheckpointError {
    int64_t code = 0;
    int64_t step = 0;
  };
  std::optional<CheckpointError> checkpoint_error;
  bool final = false;
  Where where;

  // nullptr when the lane passed nothing.
  const LaneSample* lane(const std::string& name) const {
    const auto it = lanes.find(name);
    return it == lanes.end() ? nullptr : &it->second;
  }
};

// `process.exited`: the controller's word.
struct ProcessExit {
  MonoTime t;
  int attempt = 0;
  std::string role;  // rank, worker
  int rank = -1;
  std::optional<int> worker;
  int64_t incarnation = 0;
  int64_t pid = 0;
  std::optional<int> code;
  std::string signal;  // "SIGKILL"; "" when it exited
  std::string source;  // pidfd, connector, launcher, unknown
  Where where;

  // The kernel's word and not the launcher's.
  bool independent() const { return source == "pidfd" || source == "connector"; }
  bool failed() const { return !signal.empty() || code.value_or(0) != 0; }
};

// One line of checkpoints.jsonl.
struct CheckpointRecord {
  MonoTime t;
  int attempt = 0;
  std::string reason;  // publish, rotate, death, attempt_start, attempt_end
  std::optional<int> rank;
  struct File {
    std::string name;
    int64_t bytes = 0;
  };
  std::vector<File> files;
  struct Checkpoint {
    int64_t step = 0;
    std::string name;
    bool published = false;  // its manifest lay there
    bool complete = false;
    bool verified = false;
    std::string why;
    std::string file_xxh3;
    std::string weights;  // 32 hex digits; "" when absent
    std::string optimizer;
    std::vector<std::string> rng;
  };
  std::vector<Checkpoint> checkpoints;
  Where where;

  // Step of the newest that verified; nullopt when none did.
  std::optional<int64_t> NewestVerified() const;
  const Checkpoint* Find(int64_t step) const;
};

// A ledger, sorted into its kinds.
struct RankLedger {
  LedgerHeader header;
  std::optional<LedgerStart> start;
  std::vector<LedgerStep> steps;  // in file order
  std::vector<LedgerCheckpoint> checkpoints;
  std::optional<LedgerEnd> end;
  bool torn_tail = false;
  Where where;

  // The last row of that step; nullptr when there is none.
  const LedgerStep* Find(uint64_t step) const;
};

// Raw parameter bytes that the rank dumped, digested by us.
struct WeightsDump {
  std::string bytes;
  Digest128 digest;
};

// What lies in attempt-K/rank-R or attempt-K/worker-R.W, and what was seen of that process.
struct ProcessEvidence {
  int attempt = 0;
  int rank = 0;
  std::optional<int> worker;
  std::string folder;  // relative to the run directory
  std::vector<LogLine> log;
  std::string stdout_text;
  std::string stderr_text;
  std::string stacks;  // our own frames and the tracer's are still in it
  std::optional<RankLedger> ledger;
  std::optional<PageSample> page;  // page.bin
  std::optional<WeightsDump> weights_start;
  std::optional<WeightsDump> weights_end;
};

struct AttemptEvidence {
  int attempt = 0;
  std::optional<MonoTime> started;
  std::optional<MonoTime> ended;
  std::vector<ProcessEvidence> ranks;    // sorted by rank
  std::vector<ProcessEvidence> workers;  // sorted by rank, worker
  std::vector<LogLine> launcher;

  const ProcessEvidence* rank(int r) const;
};

struct ObservedEvidence {
  std::optional<JobConfig> job;       // run.started, else job.json
  Json run_started = Json::object();  // fields of run.started
  int64_t samples = 0;                // size of the data set; 0: not said
  std::vector<Event> events;          // observed.jsonl in file order
  bool has_observed = false;          // observed.jsonl was there and began with run.started
  std::vector<PageSample> pages;      // by time
  std::vector<ProcessExit> exits;     // by time
  std::vector<Arrival> arrivals;      // by time
  std::optional<std::vector<CheckpointRecord>> checkpoints;  // nullopt: no checkpoints.jsonl
  std::vector<AttemptEvidence> attempts;                     // sorted
  std::string launcher_stdout;
  std::string launcher_stderr;
  std::vector<Damage> damage;

  std::vector<const Event*> Named(std::string_view event) const;  // in file order
  const Event* First(std::string_view event) const;               // nullptr when there is none
  const AttemptEvidence* attempt(int k) const;
  // All structured lines of ranks and launcher, by when().
  std::vector<const LogLine*> AllLines() const;
  // Why `file` as a whole could not be read; nullptr: it could, or it is not there.
  const Damage* Unreadable(std::string_view file) const;
  // Where a record of observed.jsonl stands.
  static Where At(const Event& event) { return {"observed.jsonl", event.line}; }
};

// Fails only when `run` cannot be opened at all, or holds none of a run's files: it is no run
// directory then. A run whose observed.jsonl is gone or replaced is evidence with damage. Never
// opens a secret file.
Result<ObservedEvidence> LoadObserved(const RunDir& run);

}  // namespace shakedown
