"""A client that knows nothing of Quire but an address: everything else comes by reflection."""

import sys

try:
    import grpc
    from google.protobuf import descriptor_pool, message_factory
    from google.rpc import error_details_pb2, status_pb2
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase)
except ImportError as missing:
    # Whichever test wanted a client is skipped.
    print(f"SKIPPED: {missing}; tests/requirements.txt is not installed "
          "(tests/run.sh does it and sets QUIRE_TEST_PYTHON)")
    sys.exit(77)

TIMEOUT_SECONDS = 30


class Client:

    def __init__(self, address, certificate=None):
        self.channel = (grpc.insecure_channel(address) if certificate is None else
                        grpc.secure_channel(address, grpc.ssl_channel_credentials(certificate)))
        self._database = ProtoReflectionDescriptorDatabase(self.channel)
        self._pool = descriptor_pool.DescriptorPool(self._database)

    def close(self):
        self.channel.close()

    def services(self):
        return list(self._database.get_services())

    def method(self, service, name):
        return self._pool.FindServiceByName(service).methods_by_name[name]

    def message(self, name):
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))

    def call(self, service, name, /, *, token=None, **fields):
        method = self.method(service, name)
        invoke = self.channel.unary_unary(
            f"/{service}/{name}", request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString)
        request = message_factory.GetMessageClass(method.input_type)(**fields)
        metadata = [("authorization", f"Bearer {token}")] if token else None
        return invoke(request, timeout=TIMEOUT_SECONDS, metadata=metadata)

    def stream(self, service, name, requests, /):
        method = self.method(service, name)
        request_class = message_factory.GetMessageClass(method.input_type)
        invoke = self.channel.stream_stream(
            f"/{service}/{name}", request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString)
        return invoke((request_class(**fields) for fields in requests), timeout=TIMEOUT_SECONDS)


def error_info(error):
    """The google.rpc.ErrorInfo of a refused call."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    status = status_pb2.Status.FromString(details)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return info
