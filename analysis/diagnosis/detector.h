// A detector: one way of looking at the evidence of a job, and what it says went wrong.
//
// A detector is a pure function: no files, no clock, no randomness, and nothing that knows the plan
// (the dependency rule keeps it blind). It declares itself as one constant in
// analysis/diagnosis/<name>.cc, listed in catalog.def. It says only what its own source carries and
// leaves it to combine.h to weigh one source against another: an empty answer is a good answer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/evidence/observed.h"

namespace shakedown::diagnosis {

// One sentence and the record that it rests on.
struct Reason {
  std::string text;
  Where where;
};

// A cause that this detector's source speaks for.
struct Hypothesis {
  std::string mechanism;
  std::vector<Culprit> culprits;
  int attempt = 0;
  MonoTime t;  // when it began, as far as the source tells
  // An attempt can end because of it. What hurts without ending anything (a failed save, a slow
  // worker) is a finding of its own and not the cause of an end.
  bool ends_attempt = false;
  double confidence = 0;             // of this source alone, below 1
  std::vector<Reason> reasons;       // not empty
  std::vector<std::string> missing;  // what would make it surer
  std::vector<ChainLink> roots;
  std::string runbook;  // empty: the page of the mechanism (combine.cc)
};

// What is worth reading beside a rank, if it turns out to be the culprit.
struct Note {
  int attempt = 0;
  int rank = 0;
  Reason reason;
};

struct Findings {
  std::vector<Hypothesis> hypotheses;
  std::vector<ChainLink> links;  // cascade and teardown
  std::vector<Suffered> suffered;
  std::vector<Note> notes;
  // What this source lacked, and whatever it found alarming without being able to name it.
  std::vector<std::string> missing;
  std::vector<Reason> unexplained;
};

struct Detector {
  std::string_view name;
  std::string_view reads;  // what of the evidence, for people
  std::string_view says;   // one sentence
  Findings (*detect)(const ObservedEvidence& evidence);
};

// In the order of catalog.def.
std::span<const Detector* const> Detectors();

// Since the run's first record.
double MsSinceStart(const ObservedEvidence& evidence, MonoTime t);
ChainLink Link(const ObservedEvidence& evidence, ChainRole role, int attempt,
               std::optional<int> rank, MonoTime t, std::string what, Where where);
Culprit RankCulprit(int rank);
// Text of a job, shortened for a sentence.
std::string Shorten(std::string_view text, size_t limit_bytes = 160);

}  // namespace shakedown::diagnosis
