// The library's document type, compiled once for everybody.
#include "harness/wire/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
