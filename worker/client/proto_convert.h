// Between the client's plain values and quire.v1 messages. Internal to worker/client.
#ifndef QUIRE_WORKER_CLIENT_PROTO_CONVERT_H_
#define QUIRE_WORKER_CLIENT_PROTO_CONVERT_H_

#include "quire/v1/cache_service.pb.h"
#include "worker/client/answer.h"
#include "worker/client/step.h"
#include "worker/client/types.h"

namespace quire::client {

// Fills the operations of a batch; numbers and lease are the caller's.
void ToProto(const Step& step, v1::StepBatch& batch);
void ToProto(const ModelLayout& layout, v1::ModelLayout& proto);

StepAnswer FromProto(const v1::StepAnswer& proto);
Error FromProto(const v1::OperationError& proto);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_PROTO_CONVERT_H_
