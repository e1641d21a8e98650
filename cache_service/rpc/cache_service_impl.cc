#include "cache_service/rpc/cache_service_impl.h"

#include <utility>

#include "cache_service/base/error.h"
#include "cache_service/rpc/attach_convert.h"
#include "cache_service/rpc/proto_convert.h"
#include "cache_service/rpc/step_runner.h"
#include "cache_service/rpc/step_stream.h"
#include "cache_service/rpc/wire_message.h"

namespace quire {
namespace {

// Also where no layout is known and no engine judges.
absl::Status CheckPrompt(const google::protobuf::RepeatedField<uint32_t>& tokens,
                         const NamespaceParts& parts, const std::vector<DigestRange>& digests) {
  if (tokens.empty()) return ToStatus(InvalidArgument("tokens", "a prompt has at least one token"));
  if (Error error = ValidateNamespace(parts); !error.ok()) return ToStatus(error);
  return ToStatus(ValidateDigests(digests, static_cast<uint64_t>(tokens.size())));
}

}  // namespace

CacheServiceImpl::CacheServiceImpl(const PoolRegistry& pools, CallRunner& calls,
                                   StreamRegistry& streams, uint64_t max_message_bytes)
    : pools_(pools), calls_(calls), streams_(streams), max_message_bytes_(max_message_bytes) {}

grpc::ServerUnaryReactor* CacheServiceImpl::AttachWorker(grpc::CallbackServerContext* context,
                                                         const v1::AttachWorkerRequest* request,
                                                         v1::AttachWorkerResponse* response) {
  // The first attach builds the engine's tables, which may take long; the others wait for it.
  const auto pool = pools_.Find(request->pool());
  if (pool.ok() && (*pool)->engine() == nullptr) {
    return calls_.RunSlow(context, RpcMethod::kAttachWorker, [=, this](const Caller& caller) {
      return Attach(*request, caller, response);
    });
  }
  return calls_.Run(context, RpcMethod::kAttachWorker,
                    [&](const Caller& caller) { return Attach(*request, caller, response); });
}

absl::Status CacheServiceImpl::Attach(const v1::AttachWorkerRequest& request, const Caller& caller,
                                      v1::AttachWorkerResponse* response) {
  const absl::StatusOr<Pool*> pool = pools_.Find(request.pool());
  if (!pool.ok()) return pool.status();
  absl::StatusOr<AttachRequestParts> parts =
      FromProto(request, (*pool)->options().engine.block_tokens, caller);
  if (!parts.ok()) return parts.status();
  const absl::StatusOr<PoolAttachment> attachment = (*pool)->Attach(parts->params, parts->shape);
  if (!attachment.ok()) return attachment.status();
  FillAttachment(**pool, *attachment, response);
  response->set_lease_id(pools_.WireLease(**pool, attachment->lease.lease));
  response->set_max_message_bytes(max_message_bytes_);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* CacheServiceImpl::RenewLease(grpc::CallbackServerContext* context,
                                                       const v1::RenewLeaseRequest* request,
                                                       v1::RenewLeaseResponse* response) {
  return calls_.Run(context, RpcMethod::kRenewLease, [&](const Caller& caller) -> absl::Status {
    const auto leased = pools_.FindByLease(request->lease_id(), request->epoch());
    if (!leased.ok()) return leased.status();
    const auto renewed = leased->engine->Renew({.lease = leased->lease,
                                                .epoch = request->epoch(),
                                                .applied_step = request->applied_step(),
                                                .completed_step = request->completed_step(),
                                                .caller = caller.tenant});
    if (!renewed.ok()) return renewed.status();
    ToProto(renewed->lease_duration, response->mutable_lease_duration());
    response->set_expected_step(renewed->expected_step);
    response->set_draining(renewed->draining);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* CacheServiceImpl::DetachWorker(grpc::CallbackServerContext* context,
                                                         const v1::DetachWorkerRequest* request,
                                                         v1::DetachWorkerResponse* /*response*/) {
  return calls_.Run(context, RpcMethod::kDetachWorker, [&](const Caller& caller) -> absl::Status {
    const auto leased = pools_.FindByLease(request->lease_id(), request->epoch());
    if (!leased.ok()) return leased.status();
    return leased->engine->Detach(leased->lease, request->epoch(), request->completed_step(),
                                  caller.tenant);
  });
}

grpc::ServerUnaryReactor* CacheServiceImpl::Step(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return calls_.Run(context, RpcMethod::kStep, [&](const Caller& caller) {
    v1::StepRequest parsed;
    if (absl::Status status = Parse(*request, &parsed); !status.ok()) return status;
    v1::StepResponse answered;
    absl::Status status =
        StepRunner().Run(pools_, parsed.step(), caller, answered.mutable_answer());
    if (status.ok()) Serialize(answered, response);
    return status;
  });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* CacheServiceImpl::StreamSteps(
    grpc::CallbackServerContext* context) {
  return new StepStream(pools_, calls_, streams_, context);
}

grpc::ServerUnaryReactor* CacheServiceImpl::GetBlockTable(grpc::CallbackServerContext* context,
                                                          const v1::GetBlockTableRequest* request,
                                                          v1::GetBlockTableResponse* response) {
  return calls_.Run(context, RpcMethod::kGetBlockTable,
                    [&](const Caller& caller) { return GetTables(*request, caller, response); });
}

absl::Status CacheServiceImpl::GetTables(const v1::GetBlockTableRequest& request,
                                         const Caller& caller,
                                         v1::GetBlockTableResponse* response) const {
  constexpr int kMaxSequences = 1024;
  if (request.sequences_size() > kMaxSequences) {
    return ToStatus(InvalidArgument(
        "sequences", "too many", {{"given", request.sequences_size()}, {"limit", kMaxSequences}}));
  }
  const auto leased = pools_.FindByLease(request.lease_id(), request.epoch());
  if (!leased.ok()) return leased.status();
  const auto tables = leased->engine->GetTables(leased->lease, request.epoch(),
                                                View(request.sequences()), caller.tenant);
  if (!tables.ok()) return tables.status();
  for (const SequenceView& view : *tables) {
    v1::SequenceTable* table = response->add_tables();
    table->set_sequence(view.handle);
    table->set_committed(view.committed);
    table->set_length(view.length);
    table->set_reserved(view.reserved);
    ToProto(view.handle, view.groups, table->mutable_groups());
  }
  if (response->ByteSizeLong() <= max_message_bytes_) return absl::OkStatus();
  Error error = LimitExceeded("sequences", "their tables do not fit into one message",
                              response->ByteSizeLong(), max_message_bytes_);
  error.details.emplace_back("unit", "bytes");
  return ToStatus(error);
}

grpc::ServerUnaryReactor* CacheServiceImpl::PeekPrefix(grpc::CallbackServerContext* context,
                                                       const v1::PeekPrefixRequest* request,
                                                       v1::PeekPrefixResponse* response) {
  return calls_.Run(context, RpcMethod::kPeekPrefix,
                    [&](const Caller& caller) { return Peek(*request, caller, response); });
}

absl::Status CacheServiceImpl::Peek(const v1::PeekPrefixRequest& request, const Caller& caller,
                                    v1::PeekPrefixResponse* response) const {
  const absl::StatusOr<Pool*> pool = pools_.Find(request.pool());
  if (!pool.ok()) return pool.status();
  auto parts = FromProto(request.namespace_(), caller);
  if (!parts.ok()) return parts.status();
  auto digests = FromProto(request.digests(), "digests");
  if (!digests.ok()) return digests.status();
  if (absl::Status status = CheckPrompt(request.tokens(), *parts, *digests); !status.ok()) {
    return status;
  }
  uint32_t reusable = 0;
  if (CacheEngine* engine = (*pool)->engine(); engine != nullptr) {
    const auto peeked = engine->PeekPrefix({.model_fingerprint = request.model_fingerprint(),
                                            .namespace_parts = *std::move(parts),
                                            .tokens = View(request.tokens()),
                                            .digests = *std::move(digests)});
    if (!peeked.ok()) return peeked.status();
    reusable = *peeked;
  }
  v1::TierPrefix* tier = response->add_tiers();
  tier->set_tier("device");
  tier->set_reusable_tokens(reusable);
  return absl::OkStatus();
}

}  // namespace quire
