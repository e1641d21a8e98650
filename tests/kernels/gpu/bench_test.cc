// The bench of the GPU run, on the emulator: every kind of case runs, and what is printed can be
// read again. Its figures mean nothing here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "kernels/simt/emulated_runtime.h"
#include "tests/kernels/gpu/cases.h"

namespace quire::kernels::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr BenchSizes kSmall = {.kv_heads = 2,
                               .group = 2,
                               .head_dim = 64,
                               .most_layers = 4,
                               .pool_bytes = 4 << 20,
                               .prefill_tokens = 40,
                               .copy_blocks = 8,
                               .repeats = 2};

class BenchTest : public ::testing::Test {
 protected:
  BenchTest() : host_(1 << 20), backend_(std::move(*emulated::MakeBackend({}))) {}

  std::unique_ptr<Bench> Make(const BenchSizes& sizes = kSmall) {
    return std::move(*Bench::Create(*backend_, host_, sizes));
  }

  testing::Memory host_;
  std::unique_ptr<DeviceBackend> backend_;
};

TEST_F(BenchTest, DecodesEveryTypeBlockSizeAndOrder) {
  const auto bench = Make();
  bench->SetCeilings(1e9, 1e9);
  for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
    for (const int32_t n : {16, 64}) {
      for (const bool layer_first : {false, true}) {
        const Result<Record> record = bench->Decode({3, 130, dtype, n, layer_first});
        ASSERT_TRUE(record.ok()) << record.status().argument() << record.status().message();
        EXPECT_THAT(record->name, HasSubstr(layer_first ? "layer-first/L4" : "block-first/L4"));
        EXPECT_GT(record->us, 0);
        EXPECT_NEAR(record->share, record->gb_per_s, 1e-9 * record->gb_per_s);
      }
    }
  }
}

TEST_F(BenchTest, AFullPoolHasFewerLayersAndThenNone) {
  BenchSizes sizes = kSmall;
  sizes.pool_bytes = 1 << 20;
  const auto bench = Make(sizes);
  const Result<Record> record = bench->Decode({4, 256, DType::kBF16, 16, false});
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_THAT(record->name, HasSubstr("/L2"));
  EXPECT_EQ(bench->Decode({64, 256, DType::kBF16, 16, false}).status().code(),
            StatusCode::kNoSpace);
}

TEST_F(BenchTest, PrefillsCopiesSumsAndTransfers) {
  const auto bench = Make();
  const Result<Record> prefill = bench->Prefill(DType::kE4M3);
  ASSERT_TRUE(prefill.ok()) << prefill.status().message();
  EXPECT_GT(prefill->tflop_per_s, 0);
  const Result<std::vector<Record>> cache = bench->CacheOps();
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  std::vector<std::string> names;
  for (const Record& record : *cache) {
    names.push_back(record.name);
    EXPECT_GT(record.gb_per_s, 0) << record.name;
    EXPECT_LT(record.share, 0) << "without ceilings there is no share";
  }
  EXPECT_THAT(names, ::testing::ElementsAre("copy_blocks", "checksum_blocks", "offload_blocks",
                                            "onboard_blocks"));
}

TEST_F(BenchTest, WritesRowsOfEveryType) {
  const auto bench = Make();
  bench->SetCeilings(1e9, 1e9);
  for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
    const Result<Record> record = bench->Write(dtype, 40);
    ASSERT_TRUE(record.ok()) << record.status().argument() << record.status().message();
    EXPECT_EQ(record->name, std::string("write/") + Name(dtype) + "/40");
    // 40 tokens, K and V of 2 heads of 64: bf16 in, one or two bytes out.
    const double bytes = 40.0 * 2 * 2 * 64 * (2 + static_cast<double>(ElementBytes(dtype)));
    EXPECT_NEAR(record->gb_per_s * record->us * 1e3, bytes, 1e-6 * bytes);
    EXPECT_NEAR(record->share, record->gb_per_s, 1e-9 * record->gb_per_s);
  }
}

TEST(DecodeShapesTest, AreAllCombinations) {
  std::set<std::tuple<int, int, int, int, bool>> shapes;
  for (const DecodeShape& s : DecodeShapes()) {
    shapes.insert({s.batch, s.tokens, static_cast<int>(s.dtype), s.block_tokens, s.layer_first});
  }
  EXPECT_EQ(shapes.size(), 4u * 3 * 2 * 2 * 2);
}

TEST(ReportTest, LeavesOutWhatDoesNotApply) {
  const std::vector<Record> records = {
      {.name = "decode", .us = 12.5, .gb_per_s = 4000, .share = 0.9},
      {.name = "a \"b\"", .tflop_per_s = 321.0}};
  EXPECT_EQ(
      ToJson("H200", records),
      "{\"device\": \"H200\",\n \"records\": [\n"
      "  {\"name\": \"decode\", \"us\": 12.5, \"gb_per_s\": 4000, \"share_of_ceiling\": 0.9},\n"
      "  {\"name\": \"a \\\"b\\\"\", \"tflop_per_s\": 321}\n]}\n");
  EXPECT_EQ(ToJson("x", {}), "{\"device\": \"x\",\n \"records\": [\n]}\n");
}

TEST(ReportTest, TableColumnsStandUnderTheirHeads) {
  const std::string table = ToTable(
      {{.name = "decode/bf16", .us = 12.5, .share = 0.9}, {.name = "x", .tflop_per_s = 321.0}});
  EXPECT_EQ(table,
            "case                 us      GB/s  TFLOP/s  share\n"
            "decode/bf16        12.5         -        -    90%\n"
            "x                     -         -    321.0      -\n");
}

}  // namespace
}  // namespace quire::kernels::gpu
