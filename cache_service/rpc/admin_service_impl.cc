// What an operator may do: the changing half of AdminService.
#include "cache_service/rpc/admin_service_impl.h"

#include <utility>

#include "cache_service/base/error.h"
#include "cache_service/rpc/admin_convert.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

absl::Status CheckPin(const v1::PinPrefixRequest& request, const EngineOptions& options) {
  if (absl::Status status = CheckName("owner", request.owner()); !status.ok()) return status;
  const auto duration = PositiveDuration(request.duration(), "duration");
  if (!duration.ok()) return duration.status();
  if (*duration <= options.max_pin) return absl::OkStatus();
  return ToStatus(InvalidArgument(
      "duration", "longer than a pin may last",
      {{"given", duration->count()}, {"limit", options.max_pin.count()}, {"unit", "ns"}}));
}

absl::StatusOr<std::optional<Duration>> DeadlineOf(const v1::DrainRequest& request) {
  if (!request.has_deadline()) return std::nullopt;
  absl::Status status = CheckDuration(request.deadline(), "deadline");
  if (!status.ok()) return status;
  const Duration deadline = FromProto(request.deadline());
  if (deadline >= Duration::zero()) return deadline;
  return ToStatus(InvalidArgument("deadline", "negative",
                                  {{"given", deadline.count()}, {"least", 0}, {"unit", "ns"}}));
}

absl::Status NothingResident() {
  return ToStatus(InvalidArgument("prefix.tokens", "no whole block of the prefix is resident"));
}

}  // namespace

AdminServiceImpl::AdminServiceImpl(const PoolRegistry& pools, CallRunner& calls,
                                   DrainFunction drain)
    : pools_(pools), calls_(calls), drain_(std::move(drain)) {}

absl::StatusOr<CacheEngine*> AdminServiceImpl::EngineOf(const std::string& pool) const {
  const auto found = pools_.Find(pool);
  if (!found.ok()) return found.status();
  return (*found)->engine();
}

AdminServiceImpl::Reactor* AdminServiceImpl::PinPrefix(Context* context,
                                                       const v1::PinPrefixRequest* request,
                                                       v1::PinPrefixResponse* response) {
  return calls_.Run(context, RpcMethod::kPinPrefix, [&](const Caller& caller) -> absl::Status {
    const auto pool = pools_.Find(request->prefix().pool());
    if (!pool.ok()) return OfPrefix(pool.status());
    absl::Status status = CheckPin(*request, (*pool)->options().engine);
    if (!status.ok()) return status;
    const auto prefix = FromProto(request->prefix(), caller);
    if (!prefix.ok()) return prefix.status();
    CacheEngine* engine = (*pool)->engine();
    if (engine == nullptr) return NothingResident();
    const auto pin = engine->PinPrefix(*prefix, request->owner(), FromProto(request->duration()));
    if (!pin.ok()) return OfPrefix(pin.status());
    response->set_pin_id(pin->pin_id);
    response->set_pinned_tokens(pin->pinned_tokens);
    return absl::OkStatus();
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::UnpinPrefix(Context* context,
                                                         const v1::UnpinPrefixRequest* request,
                                                         v1::UnpinPrefixResponse* /*response*/) {
  return calls_.Run(context, RpcMethod::kUnpinPrefix, [&](const Caller&) -> absl::Status {
    const auto engine = EngineOf(request->pool());
    if (!engine.ok()) return engine.status();
    if (absl::Status status = CheckName("pin_id", request->pin_id()); !status.ok()) return status;
    if (*engine != nullptr) return (*engine)->UnpinPrefix(request->pin_id());
    return ToStatus(PinNotFound(request->pin_id()));
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::EvictPrefix(Context* context,
                                                         const v1::EvictPrefixRequest* request,
                                                         v1::EvictPrefixResponse* response) {
  return calls_.Run(context, RpcMethod::kEvictPrefix, [&](const Caller& caller) -> absl::Status {
    const auto engine = EngineOf(request->prefix().pool());
    if (!engine.ok()) return OfPrefix(engine.status());
    const auto prefix = FromProto(request->prefix(), caller);
    if (!prefix.ok()) return prefix.status();
    if (*engine == nullptr) return absl::OkStatus();
    const auto blocks = (*engine)->EvictPrefix(*prefix);
    if (!blocks.ok()) return OfPrefix(blocks.status());
    response->set_blocks(*blocks);
    return absl::OkStatus();
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::FlushPool(Context* context,
                                                       const v1::FlushPoolRequest* request,
                                                       v1::FlushPoolResponse* response) {
  // A large tree takes its time.
  return calls_.RunSlow(context, RpcMethod::kFlushPool, [=, this](const Caller&) -> absl::Status {
    const auto engine = EngineOf(request->pool());
    if (!engine.ok()) return engine.status();
    if (*engine != nullptr) response->set_blocks((*engine)->Flush());
    return absl::OkStatus();
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::AuditPool(Context* context,
                                                       const v1::AuditPoolRequest* request,
                                                       v1::AuditPoolResponse* response) {
  return calls_.RunSlow(context, RpcMethod::kAuditPool, [=, this](const Caller&) -> absl::Status {
    const auto pool = pools_.Find(request->pool());
    if (!pool.ok()) return pool.status();
    AuditReport report;
    if (CacheEngine* engine = (*pool)->engine()) report = engine->Audit(request->content());
    if (const absl::Status memory = (*pool)->CheckMemory(); !memory.ok()) {
      report.findings.insert(report.findings.begin(),
                             {0, std::nullopt, "memory", std::string(memory.message())});
    }
    FillAudit(report, response);
    return absl::OkStatus();
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::EndWorker(Context* context,
                                                       const v1::EndWorkerRequest* request,
                                                       v1::EndWorkerResponse* response) {
  return calls_.Run(context, RpcMethod::kEndWorker, [&](const Caller&) -> absl::Status {
    const auto engine = EngineOf(request->pool());
    if (!engine.ok()) return engine.status();
    if (absl::Status status = CheckName("worker", request->worker()); !status.ok()) return status;
    if (*engine == nullptr) return ToStatus(WorkerNotFound(request->worker()));
    const auto ended = (*engine)->EndWorker(request->worker());
    if (!ended.ok()) return ended.status();
    response->set_sequences_ended(*ended);
    return absl::OkStatus();
  });
}

AdminServiceImpl::Reactor* AdminServiceImpl::Drain(Context* context,
                                                   const v1::DrainRequest* request,
                                                   v1::DrainResponse* response) {
  return calls_.Run(context, RpcMethod::kDrain, [&](const Caller&) -> absl::Status {
    const absl::StatusOr<std::optional<Duration>> deadline = DeadlineOf(*request);
    if (!deadline.ok()) return deadline.status();
    response->set_sequences_running(static_cast<uint32_t>(drain_(*deadline)));
    return absl::OkStatus();
  });
}

}  // namespace quire
