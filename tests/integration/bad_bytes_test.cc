// Bytes that are no message, no step, or not even HTTP/2: refused, without a trace.
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <random>

#include "tests/integration/bad_input.h"

namespace quire::testing {
namespace {

// Sends bytes that are no message of the method.
grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/quire.v1." + method, grpc::StubOptions(), &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

// A step cut short behind its last field: every shorter one is no message.
std::string WholeStep(v1::StepBatch& batch) {
  v1::StepRequest request;
  *request.mutable_step() = batch;
  request.mutable_step()->add_operations()->mutable_begin()->mutable_tokens()->Resize(30, 9);
  return request.SerializeAsString();
}

const auto kNoMessage = IsRefused(grpc::INVALID_ARGUMENT, "INVALID_ARGUMENT");

TEST_F(BadInputTest, TruncatedSteps) {
  const std::string whole = WholeStep(worker_.NewStep());
  const auto channel = server_.NewChannel(server_.address());
  for (size_t size = whole.size() - 1; size > whole.size() - 40; --size) {
    const grpc::Status status = CallWithBytes(channel, "CacheService/Step", whole.substr(0, size));
    EXPECT_THAT(status, kNoMessage) << size;
    EXPECT_EQ(NumberIn(status, "field"), "request");
    EXPECT_EQ(NumberIn(status, "given"), std::to_string(size));
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, RandomBytesToEveryMethod) {
  const auto channel = server_.NewChannel(server_.address());
  std::mt19937 random(1);
  for (const char* method :
       {"CacheService/AttachWorker", "CacheService/RenewLease", "CacheService/DetachWorker",
        "CacheService/Step", "CacheService/GetBlockTable", "CacheService/PeekPrefix",
        "AdminService/GetSequence", "AdminService/PinPrefix", "AdminService/EvictPrefix"}) {
    for (int round = 0; round < 30; ++round) {
      std::string bytes(static_cast<size_t>(round), '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      // Field 0 does not exist, so that this is never a message by chance.
      bytes.insert(bytes.begin(), '\0');
      EXPECT_FALSE(CallWithBytes(channel, method, bytes).ok()) << method;
    }
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, BytesThatAreNoStepEndTheStreamAndSaySo) {
  grpc::GenericStub stub(server_.NewChannel(server_.address()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(&context, "/quire.v1.CacheService/StreamSteps", &queue);
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(nullptr);
  ASSERT_TRUE(done());
  const std::string bytes = WholeStep(worker_.NewStep());
  const grpc::Slice slice(bytes.substr(0, bytes.size() - 3));
  stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(done());
  grpc::Status status;
  stream->Finish(&status, nullptr);
  ASSERT_TRUE(done());
  EXPECT_THAT(status, kNoMessage);
  ExpectUntouched();
}

TEST_F(BadInputTest, BytesThatAreNotHttp2) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), preface.substr(0, 9),
        preface + std::string("\x00\x40\x00\x00\x00", 5), preface + std::string(64, '\xFF')}) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = server_.folder().File("s");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  ExpectUntouched();
}

}  // namespace
}  // namespace quire::testing
