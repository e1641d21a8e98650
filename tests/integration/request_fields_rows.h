// Rows that several requests share.
#ifndef QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_ROWS_H_
#define QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_ROWS_H_

#include <string>
#include <vector>

#include "tests/integration/request_fields.h"

namespace quire::testing {

inline constexpr char kInvalid[] = "INVALID_ARGUMENT";

using Rows = std::vector<BadField>;

std::string Repeat(const std::string& text, int times);
// In quotes.
std::string TextOf(int bytes);
void Append(Rows& rows, const Rows& more);

// Where a shared message lies: `open` and `close` wrap the change. A step names what a message
// alone shows by its whole path (`whole`), the rest by the operation's field.
struct Place {
  std::string rpc;
  std::string path;
  std::string open;
  std::string close;
  std::string whole;
  std::string own;

  BadField Row(const std::string& field, const std::string& change, const std::string& number,
               const std::string& named) const {
    return {rpc, path + field, open + change + close, kInvalid, number, named};
  }
};

Rows NamespaceRows(const Place& place);
Rows DigestRows(const Place& place);
Rows RetentionRows(const Place& place);
// All of StepBatch but lease and counters.
Rows StepRows();

}  // namespace quire::testing

#endif  // QUIRE_TESTS_INTEGRATION_REQUEST_FIELDS_ROWS_H_
