// One flipped byte in cached content is found, named, and nothing serves it any more.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"
#include "proto/quire/v1/pool_file.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/test_server.h"

namespace quire::testing {
namespace {

// What a worker process does with its region, less the mapping.
class OpenRegion {
 public:
  explicit OpenRegion(const v1::MemoryRegion& region)
      : region_(region), fd_(open(region.path().c_str(), O_RDWR)) {
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(region.lock_offset());
    lock.l_len = 1;
    EXPECT_EQ(fcntl(fd_, F_OFD_SETLK, &lock), 0);
  }

  ~OpenRegion() { close(fd_); }

  OpenRegion(const OpenRegion&) = delete;
  OpenRegion& operator=(const OpenRegion&) = delete;

  void Write(uint64_t offset, char byte) const {
    EXPECT_EQ(pwrite(fd_, &byte, 1, static_cast<off_t>(region_.blocks_offset() + offset)), 1);
  }

 private:
  const v1::MemoryRegion region_;
  const int fd_;
};

class ContentAuditTest : public ::testing::Test {
 protected:
  uint32_t Reusable(uint32_t tokens) {
    v1::PeekPrefixRequest request;
    for (uint32_t token = 1; token <= tokens; ++token) request.add_tokens(token);
    v1::PeekPrefixResponse response;
    EXPECT_THAT(
        server_.Call(server_.cache(), &v1::CacheService::Stub::PeekPrefix, request, &response),
        CallIsOk());
    return response.tiers(0).reusable_tokens();
  }

  v1::AuditPoolResponse Audit() {
    v1::AuditPoolRequest request;
    request.set_content(true);
    v1::AuditPoolResponse response;
    EXPECT_THAT(
        server_.Call(server_.admin(), &v1::AdminService::Stub::AuditPool, request, &response),
        CallIsOk());
    return response;
  }

  TempFolder memory_;
  TestServer server_{[this](ServerOptions& options) { options.pools = {SharedPool(memory_, 10)}; }};
};

TEST_F(ContentAuditTest, S59_FlippedByteIsNamedAndItsSubtreeLeavesTheTree) {
  TestWorker worker(server_, "w", "", TestWorker::Memory::kMapped);
  const OpenRegion region(worker.attached().regions(0));
  worker.Begin(1, 12);
  worker.Commit(1, 12);
  const uint32_t second = worker.Table(1).blocks(1);
  worker.NewStep().add_operations()->mutable_finish()->set_sequence(1);
  worker.MustSend();
  worker.NewStep();
  worker.MustSend();
  ASSERT_EQ(Reusable(13), 12u);

  // The checksums are taken off the path of calls.
  v1::AuditPoolResponse healthy = Audit();
  for (int i = 0; i < 1000 && healthy.content_checked() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    healthy = Audit();
  }
  ASSERT_EQ(healthy.content_checked(), 3u);
  EXPECT_EQ(healthy.findings_size(), 0);

  region.Write(uint64_t{second} * worker.attached().block_bytes() + 7, 'x');
  const v1::AuditPoolResponse broken = Audit();
  ASSERT_EQ(broken.findings_size(), 1) << broken.DebugString();
  EXPECT_EQ(broken.findings(0).rule(), 0u);
  EXPECT_EQ(broken.findings(0).block(), second);
  EXPECT_EQ(Reusable(13), 4u);
  EXPECT_EQ(Audit().findings_size(), 0);
}

}  // namespace
}  // namespace quire::testing
