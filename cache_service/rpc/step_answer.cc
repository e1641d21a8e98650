#include <span>

#include "cache_service/rpc/proto_convert.h"
#include "cache_service/rpc/status_convert.h"
#include "cache_service/rpc/step_convert.h"

namespace quire {
namespace {

void FillTable(const StepResult& result, v1::StepAnswer* out) {
  const std::span<const BlockId> blocks(result.blocks);
  for (const TableRun& run : result.runs) {
    v1::TableRun* proto = out->add_table();
    proto->set_sequence(run.sequence);
    proto->set_group(run.group);
    proto->set_first_index(run.first_index);
    AppendBlocks(blocks.subspan(run.first_block, run.count), proto);
  }
}

void FillCopies(const StepResult& result, v1::StepAnswer* out) {
  for (const CopyOrder& copy : result.copies) {
    v1::CopyOrder* proto = out->add_copies();
    proto->set_group(copy.group);
    proto->set_source(Index(copy.source));
    proto->set_destination(Index(copy.destination));
    proto->set_tokens(copy.tokens);
  }
}

void FillResults(const StepResult& result, v1::StepAnswer* out) {
  for (const BeginResult& begin : result.begins) {
    v1::BeginResult* proto = out->add_begins();
    proto->set_operation(begin.operation);
    proto->set_reused_tokens(begin.reused_tokens);
    proto->set_copied_tokens(begin.copied_tokens);
    proto->set_length(begin.length);
  }
  for (const ForkResult& fork : result.forks) {
    v1::ForkResult* proto = out->add_forks();
    proto->set_operation(fork.operation);
    proto->set_length(fork.length);
  }
}

void FillFailures(const StepResult& result, v1::StepAnswer* out) {
  for (const OperationFailure& failure : result.failures) {
    v1::OperationFailure* proto = out->add_failures();
    proto->set_operation(failure.operation);
    proto->set_entry(failure.entry);
    proto->set_part(static_cast<v1::AdvancePart>(failure.part));
    proto->set_reserved(failure.reserved);
    FillOperationError(failure.error, proto->mutable_error());
  }
  for (const SequenceNotice& notice : result.notices) {
    v1::SequenceNotice* proto = out->add_notices();
    proto->set_sequence(notice.sequence);
    FillOperationError(notice.error, proto->mutable_error());
  }
}

}  // namespace

void FillAnswer(const StepResult& result, v1::StepAnswer* out) {
  out->set_step(result.step);
  FillTable(result, out);
  FillCopies(result, out);
  FillResults(result, out);
  FillFailures(result, out);
  v1::PoolCounts* pool = out->mutable_pool();
  pool->set_free(result.pool.free);
  pool->set_evictable(result.pool.evictable);
  pool->set_fenced(result.pool.fenced);
}

}  // namespace quire
