// Bad values of every field of every request, and how each is refused.
#ifndef QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_H_
#define QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_H_

#include <set>
#include <string>
#include <vector>

namespace quire::testing {

struct BadField {
  // Name of the RPC. For Step the other two speak of its StepBatch.
  std::string rpc;
  // Of the request, without indices: "layout.groups.kind".
  std::string path;
  // Text format, merged into a good request.
  std::string change;
  std::string reason;
  // A number of the error, "limit=40". INVALID_ARGUMENT has a "field" as well:
  std::string number;
  std::string field{};
  // Sent by a worker that reports its counters, and not by one in lock-step.
  bool pipelined = false;
};

// Against a pool "default" of 10 blocks of 4 tokens with the sequences 1 (tokens 1 to 6, committed)
// and 2 (tokens 100 to 102) of worker "w", incarnation 1.
std::vector<BadField> BadFields();

// "RPC.path" of fields of which every value is a good one.
std::set<std::string> FieldsOfAnyValue();

}  // namespace quire::testing

#endif  // QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_H_
