// Steps and prompts as text.
#include <sstream>
#include <variant>

#include "tests/support/step_maker.h"

namespace quire::testing {
namespace {

template <typename List>
std::string Join(const List& list) {
  std::ostringstream text;
  text << "[";
  for (const auto& item : list) text << item << " ";
  text << "]";
  return text.str();
}

std::string Text(const std::vector<RetentionRange>& ranges) {
  std::ostringstream text;
  for (const RetentionRange& range : ranges) {
    text << " keep [" << range.start << "," << range.end << ")=" << range.priority;
    if (range.duration.has_value()) text << " for " << range.duration->count() << "ns";
  }
  return text.str();
}

std::string Text(const NamespaceParts& parts, const std::vector<DigestRange>& digests) {
  std::ostringstream text;
  if (!parts.adapter.empty()) text << " adapter " << parts.adapter;
  if (!parts.salt.empty()) text << " salt " << parts.salt;
  for (const DigestRange& range : digests) {
    text << " digest " << int{range.digest[31]} << " on [" << range.start << "," << range.end
         << ")";
  }
  return text.str();
}

std::string Text(const BeginOp& op) {
  std::ostringstream text;
  text << "begin " << op.sequence << " " << Join(op.tokens) << Text(op.namespace_parts, op.digests)
       << Text(op.retention);
  if (op.allocate_tokens.has_value()) text << " allocate " << *op.allocate_tokens;
  if (op.recompute_tail > 0) text << " recompute " << op.recompute_tail;
  if (op.skip_cache_read) text << " skip read";
  if (op.reserve_tokens > 0)
    text << " reserve " << op.reserve_tokens << "x" << op.reserve_sequences;
  return text.str();
}

std::string Text(const AdvanceOp& op) {
  std::ostringstream text;
  text << "advance " << Join(op.sequences) << " from " << Join(op.start_lengths) << " tokens "
       << Join(op.tokens) << " counts " << Join(op.token_counts) << " ahead " << op.ahead
       << Join(op.aheads);
  return text.str();
}

std::string Text(const ExtendOp& op) {
  std::ostringstream text;
  text << "extend " << op.sequence << " from " << op.start_length << " slots " << op.slots;
  return text.str();
}

std::string Text(const CommitOp& op) {
  std::ostringstream text;
  text << "commit " << op.sequence << " from " << op.start_length << " to " << op.committed_length;
  return text.str();
}

std::string Text(const ForkOp& op) {
  std::ostringstream text;
  text << "fork " << op.sequence << " from " << op.start_length << " into " << Join(op.children);
  return text.str();
}

std::string Text(const TruncateOp& op) {
  std::ostringstream text;
  text << "truncate " << op.sequence << " from " << op.start_length << " to " << op.length;
  return text.str();
}

std::string Text(const FinishOp& op) {
  std::ostringstream text;
  text << "finish " << op.sequence << (op.drop ? " drop" : "") << Text(op.retention);
  return text.str();
}

}  // namespace

std::string Describe(const Prompt& prompt) {
  return Join(prompt.tokens) + Text(prompt.parts, prompt.digests);
}

std::string Describe(const Operation& operation) {
  return "  " + std::visit([](const auto& op) { return Text(op); }, operation);
}

}  // namespace quire::testing
