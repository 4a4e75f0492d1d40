#include "harness/wire/event.h"

#include "harness/base/file.h"

namespace shakedown {

std::string EncodeEvent(const Event& event) {
  Json out = Json::object();
  out["t_ns"] = event.t.ns;
  out["event"] = event.name;
  for (const auto& [key, value] : event.fields.items()) out[key] = value;
  return DumpJson(out);
}

Result<Event> DecodeEvent(std::string_view line) {
  Result<Json> json = ParseJson(line);
  if (!json) return tl::unexpected<Error>(json.error());
  const auto t = IntField(*json, "t_ns");
  const auto name = StringField(*json, "event");
  if (!t || !name) return Fail("not an event: t_ns or event is missing");
  Event event{MonoTime{*t}, *name, std::move(*json)};
  event.fields.erase("t_ns");
  event.fields.erase("event");
  return event;
}

EventFile ParseEvents(std::string_view text) {
  EventFile file;
  const Lines lines = SplitLines(text);
  int number = 0;
  for (const std::string_view line : lines.complete) {
    ++number;
    Result<Event> event = DecodeEvent(line);
    if (!event) {
      file.damaged_lines.push_back(number);
      continue;
    }
    event->line = number;
    file.events.push_back(std::move(*event));
  }
  file.torn_tail = !lines.torn.empty();
  return file;
}

}  // namespace shakedown
