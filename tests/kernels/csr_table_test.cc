// Tables in CSR form: the same attention as from rows, and nothing that contradicts itself.
#include "kernels/csr_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CaseParams Ragged() {
  CaseParams params;
  params.sequences = {{100, 1}, {0, 0}, {16, 1}, {33, 20}, {1, 1}};
  params.q_heads = 4;
  params.kv_heads = 2;
  params.head_dim = 64;
  params.table_padding = 3;
  return params;
}

// The last run of `test` with `table` in place of its own.
Status RunWith(AttentionCase& test, const BlockTableView& table) {
  const auto backend = MakeTested();
  const AttentionParams params = test.params();
  const Result<AttentionPlan> plan = backend->Plan(test.pool().view(), table, params, {.parts = 3});
  if (!plan.ok()) return plan.status();
  std::vector<std::byte> space(static_cast<size_t>(plan->workspace_bytes));
  return backend->AppendAttention(test.pool().view(), table, params, *plan, space);
}

TEST(CsrTableTest, AttentionFromCsrEqualsAttentionFromRows) {
  ForEachTarget([](const std::string& target) {
    SCOPED_TRACE(target);
    AttentionCase test(Ragged());
    test.ComputeReference();
    const Result<CsrTable> csr = CsrTable::FromRows(test.table(), 16);
    ASSERT_TRUE(csr.ok()) << csr.status().message();
    const Result<BlockTable> rows = BlockTable::FromCsr(csr->view(), 16);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    ASSERT_TRUE(test.Run(*MakeTested(), {.parts = 3}).ok());
    const std::vector<std::byte> want = test.out();
    ASSERT_TRUE(RunWith(test, rows->view()).ok());
    EXPECT_EQ(test.out(), want);
    EXPECT_EQ(test.Compare(), "");
  });
}

TEST(CsrTableTest, RowsBecomeOffsetsIdsAndLastLengths) {
  const std::vector<int32_t> ids = {7, 3,  9,  -1,   // 33 tokens
                                    0, -1, -1, -1,   // none
                                    4, 0,  -1, -1};  // 32
  const std::vector<int32_t> lens = {33, 0, 32};
  const BlockTableView table{ids.data(), 4, 3, 4, lens.data()};
  const Result<CsrTable> csr = CsrTable::FromRows(table, 16);
  ASSERT_TRUE(csr.ok()) << csr.status().message();
  EXPECT_THAT(csr->view().indptr, ElementsAre(0, 3, 3, 5));
  EXPECT_THAT(csr->view().indices, ElementsAre(7, 3, 9, 4, 0));
  EXPECT_THAT(csr->view().last_page_len, ElementsAre(1, 0, 16));
}

TEST(CsrTableTest, NoRowsGiveAnEmptyTable) {
  const Result<CsrTable> csr = CsrTable::FromRows({}, 16);
  ASSERT_TRUE(csr.ok());
  EXPECT_THAT(csr->view().indptr, ElementsAre(0));
  const Result<BlockTable> rows = BlockTable::FromCsr(csr->view(), 16);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->view().rows, 0);
}

// Which argument is refused.
std::string Refused(const std::vector<int32_t>& indptr, const std::vector<int32_t>& indices,
                    const std::vector<int32_t>& last, int32_t block_tokens = 16) {
  return BlockTable::FromCsr({indptr, indices, last}, block_tokens).status().argument();
}

TEST(CsrTableTest, ArraysThatContradictEachOtherAreRefused) {
  EXPECT_EQ(Refused({0, 2, 3}, {5, 6, 7}, {16, 1}), "");
  EXPECT_EQ(Refused({}, {}, {}), "csr.indptr");
  EXPECT_EQ(Refused({0, 2}, {5, 6, 7}, {16, 1}), "csr.indptr");
  EXPECT_EQ(Refused({1, 2, 3}, {5, 6, 7}, {16, 1}), "csr.indptr");
  EXPECT_EQ(Refused({0, 2, 4}, {5, 6, 7}, {16, 1}), "csr.indptr");
  EXPECT_EQ(Refused({0, 4, 3}, {5, 6, 7}, {16, 1}), "csr.indptr");
  EXPECT_EQ(Refused({0, -1, 3}, {5, 6, 7}, {16, 1}), "csr.indptr");
  EXPECT_EQ(Refused({0, 2, 3}, {5, 6, 7}, {0, 1}), "csr.last_page_len");
  EXPECT_EQ(Refused({0, 2, 3}, {5, 6, 7}, {16, 17}), "csr.last_page_len");
  EXPECT_EQ(Refused({0, 0, 3}, {5, 6, 7}, {99, 1}), "");  // no tokens: not read
  EXPECT_EQ(Refused({0, 2, 3}, {5, 6, 7}, {1, 1}, 1), "block_tokens");
}

TEST(CsrTableTest, MoreTokensThanALengthCanCountAreRefused) {
  const std::vector<int32_t> indices(size_t{1} << 23, 0);
  EXPECT_EQ(Refused({0, 1 << 23}, indices, {1}, 256), "csr.indptr");
}

TEST(CsrTableTest, IdsOutsideThePoolAreRefusedByTheCall) {
  AttentionCase test(Ragged());
  ASSERT_TRUE(test.Run(*MakeTested(), {}).ok());  // sizes the outputs
  for (const int32_t bad : {-1, -7, 1 << 20}) {
    const std::vector<int32_t> indptr = {0, 7, 7, 8, 11, 12};
    std::vector<int32_t> indices(12, 0);
    indices[9] = bad;
    const Result<BlockTable> rows =
        BlockTable::FromCsr({indptr, indices, std::vector<int32_t>{4, 0, 16, 1, 1}}, 16);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(RunWith(test, rows->view()).argument(), "table.ids") << bad;
  }
}

TEST(CsrTableTest, RowsThatCsrCannotHoldAreRefused) {
  const std::vector<int32_t> ids = {7, -1, 9};
  const std::vector<int32_t> lens_within = {16};
  const auto refused = [&](int32_t len) {
    return CsrTable::FromRows({ids.data(), 3, 1, 3, &len}, 16).status().argument();
  };
  EXPECT_EQ(refused(16), "");
  EXPECT_EQ(refused(17), "table.ids");  // dropped by a window
  EXPECT_EQ(refused(49), "table.lens");
  EXPECT_EQ(refused(-1), "table.lens");
  // Lengths and columns whose products or sums leave their type.
  const int64_t columns = int64_t{1} << 60;
  const int32_t longest = INT32_MAX;
  EXPECT_EQ(CsrTable::FromRows({ids.data(), 3, 1, 3, &longest}, 256).status().argument(),
            "table.lens");
  EXPECT_EQ(CsrTable::FromRows({ids.data(), columns, 1, columns, lens_within.data()}, 16)
                .status()
                .argument(),
            "");
  const int32_t len = 16;
  EXPECT_EQ(CsrTable::FromRows({nullptr, 3, 1, 3, &len}, 16).status().argument(), "table.ids");
  EXPECT_EQ(CsrTable::FromRows({ids.data(), 3, 1, 3, nullptr}, 16).status().argument(),
            "table.lens");
  EXPECT_EQ(CsrTable::FromRows({ids.data(), 2, 1, 3, &len}, 16).status().argument(),
            "table.row_stride");
}

}  // namespace
}  // namespace quire::kernels::testing
