// What is where: the reading half of AdminService.
#include <algorithm>

#include "cache_service/base/error.h"
#include "cache_service/rpc/admin_convert.h"
#include "cache_service/rpc/admin_service_impl.h"
#include "cache_service/rpc/page.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {

using Context = AdminServiceImpl::Context;
using Reactor = AdminServiceImpl::Reactor;

Reactor* AdminServiceImpl::ListPools(Context* context, const v1::ListPoolsRequest* request,
                                     v1::ListPoolsResponse* response) {
  return calls_.Run(context, RpcMethod::kListPools, [&](const Caller&) -> absl::Status {
    auto pager = Pager::Make(request->page_size(), request->page_token(), {"pools"});
    if (!pager.ok()) return pager.status();
    for (const auto& pool : pools_.pools()) {
      if (pager->Takes(pool->name())) FillPool(*pool, response->add_pools());
    }
    response->set_next_page_token(pager->next_page_token());
    return absl::OkStatus();
  });
}

Reactor* AdminServiceImpl::GetPool(Context* context, const v1::GetPoolRequest* request,
                                   v1::GetPoolResponse* response) {
  return calls_.Run(context, RpcMethod::kGetPool, [&](const Caller&) -> absl::Status {
    const auto pool = pools_.Find(request->pool());
    if (!pool.ok()) return pool.status();
    FillPool(**pool, response->mutable_pool());
    return absl::OkStatus();
  });
}

Reactor* AdminServiceImpl::ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                       v1::ListWorkersResponse* response) {
  return calls_.Run(context, RpcMethod::kListWorkers, [&](const Caller&) -> absl::Status {
    const auto pool = pools_.Find(request->pool());
    if (!pool.ok()) return pool.status();
    auto pager =
        Pager::Make(request->page_size(), request->page_token(), {"workers", (*pool)->name()});
    if (!pager.ok()) return pager.status();
    CacheEngine* engine = (*pool)->engine();
    if (engine == nullptr) return absl::OkStatus();
    for (const WorkerView& worker : engine->ListWorkers()) {
      if (!pager->Takes(worker.name)) continue;
      FillWorker(worker, (*pool)->name(), response->add_workers());
    }
    response->set_next_page_token(pager->next_page_token());
    return absl::OkStatus();
  });
}

Reactor* AdminServiceImpl::ListSequences(Context* context, const v1::ListSequencesRequest* request,
                                         v1::ListSequencesResponse* response) {
  return calls_.Run(context, RpcMethod::kListSequences, [&](const Caller&) -> absl::Status {
    const auto pool = pools_.Find(request->pool());
    if (!pool.ok()) return pool.status();
    auto pager = Pager::Make(request->page_size(), request->page_token(),
                             {"sequences", (*pool)->name(), request->worker()});
    if (!pager.ok()) return pager.status();
    CacheEngine* engine = (*pool)->engine();
    if (engine == nullptr) return absl::OkStatus();
    for (const SequenceView& view : engine->ListSequences(request->worker())) {
      if (!pager->Takes(SequenceKey(view.worker, view.handle))) continue;
      FillSequence(view, response->add_sequences());
    }
    response->set_next_page_token(pager->next_page_token());
    return absl::OkStatus();
  });
}

Reactor* AdminServiceImpl::GetSequence(Context* context, const v1::GetSequenceRequest* request,
                                       v1::GetSequenceResponse* response) {
  return calls_.Run(context, RpcMethod::kGetSequence, [&](const Caller&) -> absl::Status {
    const auto engine = EngineOf(request->pool());
    if (!engine.ok()) return engine.status();
    if (absl::Status status = CheckName("worker", request->worker()); !status.ok()) return status;
    if (*engine == nullptr) return ToStatus(WorkerNotFound(request->worker()));
    const auto view = (*engine)->GetSequence(request->worker(), request->handle());
    if (!view.ok()) return view.status();
    FillSequence(*view, response->mutable_sequence());
    return absl::OkStatus();
  });
}

Reactor* AdminServiceImpl::ListPins(Context* context, const v1::ListPinsRequest* request,
                                    v1::ListPinsResponse* response) {
  return calls_.Run(context, RpcMethod::kListPins, [&](const Caller&) -> absl::Status {
    const auto pool = pools_.Find(request->pool());
    if (!pool.ok()) return pool.status();
    auto pager =
        Pager::Make(request->page_size(), request->page_token(), {"pins", (*pool)->name()});
    if (!pager.ok()) return pager.status();
    CacheEngine* engine = (*pool)->engine();
    if (engine == nullptr) return absl::OkStatus();
    std::vector<PinView> pins = engine->ListPins();
    std::ranges::sort(pins, {}, &PinView::pin_id);
    for (const PinView& pin : pins) {
      if (pager->Takes(pin.pin_id)) FillPin(pin, response->add_pins());
    }
    response->set_next_page_token(pager->next_page_token());
    return absl::OkStatus();
  });
}

}  // namespace quire
