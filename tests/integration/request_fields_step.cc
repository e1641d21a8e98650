#include "tests/integration/request_fields_rows.h"

namespace quire::testing {
namespace {

// Operations on an existing sequence name its handle and its length.
Rows HandleRows() {
  Rows rows;
  for (const std::string op : {"extend", "commit", "fork", "truncate"}) {
    const std::string path = "operations." + op;
    const std::string open = "operations { " + op + " { ";
    const std::string rest = op == "fork" ? " children: 7 } }" : " } }";
    rows.push_back({"Step", path + ".sequence", open + "sequence: 99 start_length: 6" + rest,
                    "SEQUENCE_NOT_FOUND", "sequence=99"});
    rows.push_back({"Step", path + ".start_length", open + "sequence: 1 start_length: 5" + rest,
                    "LENGTH_MISMATCH", "length=6"});
  }
  rows.push_back({"Step", "operations.finish.sequence", "operations { finish { sequence: 99 } }",
                  "SEQUENCE_NOT_FOUND", "sequence=99"});
  return rows;
}

Rows AdvanceRows() {
  const auto row = [](const std::string& field, const std::string& change,
                      const std::string& number) {
    return BadField{"Step",
                    "operations.advance." + field,
                    "operations { advance { " + change + " } }",
                    kInvalid,
                    number,
                    "operations[0].advance." + field};
  };
  const std::string one = "sequences: 1 start_lengths: 6 tokens: 5 ";
  BadField unknown = row("sequences", "sequences: 99 start_lengths: 6 tokens: 5", "sequence=99");
  unknown.reason = "SEQUENCE_NOT_FOUND";
  BadField elsewhere = row("start_lengths", "sequences: 1 start_lengths: 5 tokens: 5", "length=6");
  elsewhere.reason = "LENGTH_MISMATCH";
  BadField long_one =
      row("tokens", one + Repeat("tokens: 5 ", 34) + "token_counts: 35", "limit=40");
  long_one.field = "tokens";
  return {unknown,
          elsewhere,
          long_one,
          row("start_lengths", "sequences: 1 tokens: 5", "limit=1"),
          row("tokens", one + "tokens: 6", "limit=1"),
          row("token_counts", one + "token_counts: 1 token_counts: 0", "limit=1"),
          row("aheads", one + "aheads: 1 aheads: 0", "limit=1"),
          row("ahead", one + "ahead: 1 aheads: 1", "given=1")};
}

Rows OperationRows() {
  const auto row = [](const std::string& path, const std::string& change, const std::string& number,
                      const std::string& named) {
    return BadField{"Step", "operations." + path, "operations { " + change + " }", kInvalid, number,
                    named};
  };
  const std::string begin = "begin { sequence: 3 tokens: 7 ";
  BadField exists = row("begin.sequence", "begin { sequence: 1 tokens: 7 }", "sequence=1", "");
  exists.reason = "SEQUENCE_EXISTS";
  BadField child =
      row("fork.children", "fork { sequence: 1 start_length: 6 children: 2 }", "sequence=2", "");
  child.reason = "SEQUENCE_EXISTS";
  return {
      exists,
      child,
      row("begin.tokens", "begin { sequence: 3 }", "", "tokens"),
      row("begin.tokens", begin + Repeat("tokens: 7 ", 40) + "}", "limit=40", "tokens"),
      row("begin.reserve_tokens", begin + "reserve_tokens: 41 }", "limit=40", "reserve_tokens"),
      row("begin.reserve_tokens", begin + "tokens: 8 reserve_tokens: 1 }", "limit=2",
          "reserve_tokens"),
      row("begin.reserve_sequences", begin + "reserve_tokens: 4 reserve_sequences: 65537 }",
          "limit=65536", "reserve_sequences"),
      row("commit.committed_length", "commit { sequence: 1 start_length: 6 committed_length: 7 }",
          "limit=6", "committed_length"),
      row("fork.children", "fork { sequence: 1 start_length: 6 }", "", "children"),
      row("truncate.length", "truncate { sequence: 1 start_length: 6 length: 7 }", "limit=6",
          "length")};
}

}  // namespace

Rows StepRows() {
  Rows rows = {{"Step", "step", "step: 0", kInvalid, "", "step"},
               {"Step", "step", "step: 99", "STEP_OUT_OF_ORDER", "expected_step=4"},
               {"Step", "operations", "operations {}", kInvalid, "", "operations[0]"},
               {"Step", "operations", Repeat("operations { finish {} } ", 4097), kInvalid,
                "limit=4096", "operations"}};
  const std::string begin = "operations { begin { sequence: 3 tokens: [7, 7, 7, 7] ";
  const Place place{"Step", "operations.begin.", begin, " } }", "operations[0].begin.", ""};
  Append(rows, NamespaceRows(place));
  Append(rows, DigestRows(place));
  Append(rows, RetentionRows(place));
  Append(rows, RetentionRows({"Step", "operations.finish.", "operations { finish { sequence: 1 ",
                              " } }", "operations[0].finish.", ""}));
  Append(rows, HandleRows());
  Append(rows, AdvanceRows());
  Append(rows, OperationRows());
  return rows;
}

}  // namespace quire::testing
