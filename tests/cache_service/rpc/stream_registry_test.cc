#include "cache_service/rpc/stream_registry.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

class FakeStream final : public EndableStream {
 public:
  void End(const grpc::Status& status) override {
    ++ends;
    last = status.error_code();
  }

  int ends = 0;
  grpc::StatusCode last = grpc::OK;
};

TEST(StreamRegistryTest, NewerStreamOfALeaseEndsTheOlder) {
  StreamRegistry registry;
  FakeStream older, newer;
  registry.Add(&older);
  registry.Serve("l", &older);
  registry.Add(&newer);
  registry.Serve("l", &newer);
  EXPECT_EQ(older.ends, 1);
  EXPECT_EQ(older.last, grpc::CANCELLED);
  EXPECT_EQ(newer.ends, 0);
  EXPECT_FALSE(registry.Remove("l", &older));
  EXPECT_TRUE(registry.Remove("l", &newer));
}

TEST(StreamRegistryTest, LeasesDoNotMindEachOther) {
  StreamRegistry registry;
  FakeStream a, b;
  registry.Serve("a", &a);
  registry.Serve("b", &b);
  registry.Serve("a", &a);
  EXPECT_EQ(a.ends + b.ends, 0);
}

TEST(StreamRegistryTest, EndAllEndsOpenAndLaterStreams) {
  StreamRegistry registry;
  FakeStream open, gone, later;
  registry.Add(&open);
  registry.Add(&gone);
  EXPECT_FALSE(registry.Remove("", &gone));
  registry.EndAll(grpc::Status(grpc::UNAVAILABLE, "end"));
  EXPECT_EQ(open.last, grpc::UNAVAILABLE);
  EXPECT_EQ(gone.ends, 0);
  registry.Add(&later);
  EXPECT_EQ(later.last, grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace quire
