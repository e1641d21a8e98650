#include "cache_service/rpc/proto_convert.h"

#include "cache_service/rpc/layout_convert.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

google::protobuf::Duration Proto(int64_t seconds, int32_t nanos = 0) {
  google::protobuf::Duration duration;
  duration.set_seconds(seconds);
  duration.set_nanos(nanos);
  return duration;
}

TEST(DurationTest, RoundTrips) {
  for (const Duration duration :
       {Duration(0), Duration(milliseconds(1500)), Duration(-1), Duration(milliseconds(-2500))}) {
    google::protobuf::Duration proto;
    ToProto(duration, &proto);
    EXPECT_EQ(FromProto(proto), duration);
  }
}

TEST(DurationTest, Saturates) {
  EXPECT_EQ(FromProto(Proto(INT64_MAX)), Duration::max());
  EXPECT_EQ(FromProto(Proto(INT64_MIN)), Duration::min());
  EXPECT_EQ(FromProto(Proto(315576000000)), Duration::max());
  // Nanoseconds out of their range neither overflow nor trap.
  EXPECT_GT(FromProto(Proto(9223372032, INT32_MAX)), Duration::zero());
  EXPECT_LT(FromProto(Proto(-9223372032, INT32_MIN)), Duration::zero());
}

TEST(DurationTest, SecondsAndNanosAreInRangeAndOfOneSign) {
  const google::protobuf::Duration good[] = {Proto(0),
                                             Proto(1, 999'999'999),
                                             Proto(-1, -999'999'999),
                                             Proto(0, -1),
                                             Proto(315'576'000'000, 999'999'999),
                                             Proto(-315'576'000'000)};
  for (const auto& duration : good) {
    EXPECT_THAT(CheckDuration(duration, "d"), IsOk()) << duration.DebugString();
  }
  const google::protobuf::Duration bad[] = {
      Proto(1, 1'000'000'000), Proto(0, -1'000'000'000), Proto(1, -1),        Proto(-1, 1),
      Proto(0, INT32_MAX),     Proto(0, INT32_MIN),      Proto(INT64_MAX, 0), Proto(INT64_MIN, 0),
      Proto(315'576'000'001),  Proto(-315'576'000'001)};
  for (const auto& duration : bad) {
    EXPECT_THAT(CheckDuration(duration, "d"), IsInvalid("d")) << duration.DebugString();
    EXPECT_THAT(PositiveDuration(duration, "d"), IsInvalid("d")) << duration.DebugString();
  }
  EXPECT_THAT(PositiveDuration(Proto(0), "d"), IsInvalid("d"));
  EXPECT_THAT(PositiveDuration(Proto(0, -1), "d"), IsInvalid("d"));
  EXPECT_THAT(PositiveDuration(Proto(0, 1), "d"), IsOk());
}

TEST(NamespaceTest, TenantComesFromTheCaller) {
  v1::Namespace proto;
  proto.set_adapter("a");
  const Caller owner{.tenant = "acme", .is_admin = false};
  auto parts = FromProto(proto, owner);
  ASSERT_THAT(parts, IsOk());
  EXPECT_EQ(parts->tenant, "acme");
  EXPECT_EQ(parts->adapter, "a");
  proto.set_tenant("acme");
  EXPECT_THAT(FromProto(proto, owner), IsOk());
  proto.set_tenant("other");
  EXPECT_THAT(FromProto(proto, owner), HasReason(Reason::kPermissionDenied));
  parts = FromProto(proto, Caller{});
  ASSERT_THAT(parts, IsOk());
  EXPECT_EQ(parts->tenant, "other");
}

TEST(RetentionTest, RangesAreCounted) {
  RetentionRanges ranges;
  for (int i = 0; i < 256; ++i) ranges.Add()->set_priority(50);
  EXPECT_THAT(FromProto(ranges, "begin.retention"), IsOk());
  ranges.Add()->set_priority(50);
  const absl::Status status = FromProto(ranges, "begin.retention").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(RetentionTest, PriorityIsRequiredAndZeroIsAValue) {
  RetentionRanges ranges;
  v1::RetentionRange* range = ranges.Add();
  range->set_start(3);
  EXPECT_THAT(FromProto(ranges, "f"), IsInvalid("f[0].priority"));
  range->set_priority(0);
  auto converted = FromProto(ranges, "f");
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ((*converted)[0].priority, 0u);
  EXPECT_EQ((*converted)[0].end, kRangeToEnd);
  EXPECT_FALSE((*converted)[0].duration.has_value());
  range->set_end(9);
  *range->mutable_duration() = Proto(-4);
  converted = FromProto(ranges, "f");
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ((*converted)[0].end, 9u);
  EXPECT_LT(*(*converted)[0].duration, Duration::zero());
}

TEST(DigestTest, HasExactly32Bytes) {
  DigestRanges ranges;
  v1::DigestRange* range = ranges.Add();
  for (const size_t size : {size_t{0}, size_t{31}, size_t{33}}) {
    range->set_digest(std::string(size, 'd'));
    EXPECT_THAT(FromProto(ranges, "f"), IsInvalid("f[0].digest"));
  }
  range->set_digest(std::string(32, 'd'));
  const auto converted = FromProto(ranges, "f");
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ((*converted)[0].digest[31], 'd');
}

TEST(GroupTest, OnlyKnownKindsWithTheirWindow) {
  v1::LayerGroup group;
  EXPECT_THAT(FromProto(group, "g"), IsInvalid("g.kind"));
  group.set_kind(static_cast<v1::GroupKind>(17));
  EXPECT_THAT(FromProto(group, "g"), IsInvalid("g.kind"));
  group.set_kind(v1::GROUP_KIND_WINDOW);
  EXPECT_THAT(FromProto(group, "g"), IsInvalid("g.window_tokens"));
  group.set_window_tokens(4);
  EXPECT_THAT(FromProto(group, "g"), IsOk());
  group.set_kind(v1::GROUP_KIND_FULL);
  EXPECT_THAT(FromProto(group, "g"), IsInvalid("g.window_tokens"));
}

TEST(LayoutTest, UnknownDtypeIsRefused) {
  v1::ModelLayout layout;
  layout.set_kv_heads(1);
  layout.set_head_dim(64);
  EXPECT_THAT(FromProto(layout, 16), IsInvalid("layout.dtype"));
  layout.set_dtype(static_cast<v1::Dtype>(99));
  EXPECT_THAT(FromProto(layout, 16), IsInvalid("layout.dtype"));
  layout.set_dtype(v1::DTYPE_BF16);
  const auto shape = FromProto(layout, 16);
  ASSERT_THAT(shape, IsOk());
  EXPECT_EQ(shape->dtype, kernels::DType::kBF16);
  EXPECT_EQ(shape->block_tokens, 16u);
}

TEST(LayoutTest, TooManyLayersAreRefusedBeforeAnythingIsPlanned) {
  v1::ModelLayout layout;
  layout.mutable_layer_windows()->Resize(1025, 0);
  EXPECT_THAT(FromProto(layout, 16), IsInvalid("layout.layer_windows"));
}

TEST(TableTest, OneRunPerGroupWithEveryBlock) {
  const std::vector<GroupTable> tables = {{{BlockId{0}, BlockId{7}}}, {{kNoBlock, BlockId{3}}}};
  google::protobuf::RepeatedPtrField<v1::TableRun> runs;
  ToProto(5, tables, &runs);
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].sequence(), 5u);
  EXPECT_EQ(runs[0].blocks(0), 0u);
  EXPECT_EQ(runs[0].blocks(1), 7u);
  EXPECT_EQ(runs[1].group(), 1u);
  EXPECT_EQ(runs[1].blocks(0), 0xFFFFFFFFu);
}

}  // namespace
}  // namespace quire
