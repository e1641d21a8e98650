#include "tests/integration/request_fields_rows.h"

namespace quire::testing {

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string TextOf(int bytes) { return "'" + std::string(static_cast<size_t>(bytes), 'a') + "'"; }

void Append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

Rows NamespaceRows(const Place& place) {
  Rows rows;
  for (const std::string part : {"adapter", "salt", "tenant", "weights_version"}) {
    rows.push_back(place.Row("namespace." + part,
                             "namespace { " + part + ": " + TextOf(1025) + " }", "limit=1024",
                             place.own + "namespace." + part));
  }
  return rows;
}

Rows DigestRows(const Place& place) {
  const std::string digest = "digest: '" + std::string(32, 'd') + "'";
  return {place.Row("digests.start",
                    "digests { end: 2 " + digest + " } digests { start: 1 end: 3 " + digest + " }",
                    "limit=2", place.own + "digests[1].start"),
          place.Row("digests.end", "digests { start: 2 end: 2 " + digest + " }", "limit=2",
                    place.own + "digests[0].end"),
          place.Row("digests.end", "digests { start: 2 end: 9 " + digest + " }", "given=9",
                    place.own + "digests[0].end"),
          place.Row("digests.digest", "digests { end: 1 digest: 'short' }", "limit=32",
                    place.whole + "digests[0].digest")};
}

Rows RetentionRows(const Place& place) {
  const auto row = [&](const std::string& field, const std::string& change,
                       const std::string& number, const std::string& named) {
    return place.Row("retention." + field, "retention { " + change + " }", number, named);
  };
  const std::string whole = place.whole + "retention[0].";
  BadField many = row("priority", "priority: 1", "limit=256", "");
  many.change = place.open + Repeat("retention { priority: 1 } ", 257) + place.close;
  many.reason = "LIMIT_EXCEEDED";
  return {row("start", "end: 3 priority: 1 } retention { start: 2 priority: 1", "limit=3",
              "retention[1].start"),
          row("end", "start: 2 end: 2 priority: 1", "limit=2", "retention[0].end"),
          row("end", "priority: 1 } retention { start: 9 priority: 1", "", "retention[0].end"),
          row("priority", "start: 1", "", whole + "priority"),
          row("priority", "priority: 101", "limit=100", "retention[0].priority"),
          row("duration", "priority: 1 duration {}", "given=0", "retention[0].duration"),
          row("duration", "priority: 1 duration { seconds: -1 }", "given=-1000000000",
              "retention[0].duration"),
          row("duration", "priority: 1 duration { seconds: 1 nanos: -1 }", "given=-1",
              whole + "duration"),
          many};
}

}  // namespace quire::testing
