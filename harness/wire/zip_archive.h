// The part of the zip format that torch.save uses: entries that are stored, not compressed. A
// reader of our own, so that what a checkpoint holds is not only known through the library that
// wrote it. Format: APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16
// and 4.5.3 (zip64).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/base/status.h"

namespace shakedown {

// Name of each entry and its bytes, which point into `archive`. Every offset and size is checked
// against the archive: hostile bytes are an Error that says what is wrong, never a read beyond the
// end. A compressed or encrypted entry, and two entries of one name, are Errors.
Result<std::map<std::string, std::string_view>> ReadZipArchive(std::string_view archive);

}  // namespace shakedown
