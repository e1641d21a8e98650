// Messages of calls that the service parses by itself.
//
// gRPC answers a request that it cannot parse with UNIMPLEMENTED and no text, and ends a stream as
// if its caller had closed it. Calls that carry steps take the bytes and say what is wrong.
#ifndef QUIRE_CACHE_SERVICE_RPC_WIRE_MESSAGE_H_
#define QUIRE_CACHE_SERVICE_RPC_WIRE_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include "absl/status/status.h"
#include "cache_service/base/error.h"

namespace quire {

// Errors: INVALID_ARGUMENT naming the message's type.
inline absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  grpc::ByteBuffer shared(bytes);
  grpc::ProtoBufferReader reader(&shared);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return ToStatus(InvalidArgument("request", "not a " + message->GetTypeName(),
                                  {{"given", bytes.Length()}, {"unit", "bytes"}}));
}

template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  bool own_buffer = false;
  bytes->Clear();
  // Fails only for messages above 2 GiB, which the bounds of an answer rule out.
  (void)grpc::SerializationTraits<Message>::Serialize(message, bytes, &own_buffer);
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_WIRE_MESSAGE_H_
