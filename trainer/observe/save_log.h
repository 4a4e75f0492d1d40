// What came of a save, in log and ledger.
#pragma once

#include "trainer/checkpoint/saver.h"
#include "trainer/observe/event_log.h"
#include "trainer/observe/ledger_writer.h"

namespace shakedown {

// Both must outlive the saver that it is given to.
SaveObserver RecordSaves(EventLog& log, LedgerWriter& ledger, CheckpointMode mode);

}  // namespace shakedown
