#include "kernels/csr_table.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/guard.h"

namespace quire::kernels {
namespace {

using std::to_string;

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

Status CheckBlockTokens(int32_t tokens) {
  if (tokens >= 2 && tokens <= 256) return Status::Ok();
  return Status::Invalid("block_tokens",
                         "block_tokens is " + to_string(tokens) + ", must be 2..256");
}

Status CheckRow(const CsrTableView& csr, size_t row, int32_t block_tokens) {
  const int64_t blocks = int64_t{csr.indptr[row + 1]} - csr.indptr[row];
  if (blocks < 0) return Status::Invalid("csr.indptr", "indptr falls at row " + to_string(row));
  if (blocks == 0) return Status::Ok();
  const int32_t last = csr.last_page_len[row];
  if (last < 1 || last > block_tokens) {
    return Status::Invalid("csr.last_page_len", "last_page_len of row " + to_string(row) + " is " +
                                                    to_string(last) + ", must be 1.." +
                                                    to_string(block_tokens));
  }
  if (blocks * block_tokens <= kMaxTokens) return Status::Ok();
  return Status::OutOfRange("csr.indptr", "row " + to_string(row) + " has " + to_string(blocks) +
                                              " blocks, too many for 2^31 - 1 tokens");
}

Status CheckCsr(const CsrTableView& csr, int32_t block_tokens) {
  if (Status s = CheckBlockTokens(block_tokens); !s.ok()) return s;
  const size_t rows = csr.last_page_len.size();
  if (csr.indptr.size() != rows + 1) {
    return Status::Invalid("csr.indptr", "indptr has " + to_string(csr.indptr.size()) +
                                             " entries for " + to_string(rows) + " rows");
  }
  // Before any row is looked at: a falling indptr stays inside these ends or falls below them.
  if (csr.indptr.front() != 0 || int64_t{csr.indptr.back()} != std::ssize(csr.indices)) {
    return Status::Invalid("csr.indptr", "indptr runs from " + to_string(csr.indptr.front()) +
                                             " to " + to_string(csr.indptr.back()) + " over " +
                                             to_string(csr.indices.size()) + " indices");
  }
  for (size_t row = 0; row < rows; ++row) {
    if (Status s = CheckRow(csr, row, block_tokens); !s.ok()) return s;
  }
  return Status::Ok();
}

Status CheckRowOf(const BlockTableView& table, int64_t row, int32_t block_tokens) {
  const int64_t len = table.lens[row];
  // Blocks, as columns times tokens may overflow.
  if (len < 0 || (len + block_tokens - 1) / block_tokens > table.columns) {
    return Status::OutOfRange(
        "table.lens", "length " + to_string(len) + " of row " + to_string(row) + " in a table of " +
                          to_string(table.columns) + " blocks of " + to_string(block_tokens));
  }
  const int32_t* ids = table.ids + row * table.row_stride;
  const int32_t* end = ids + (len + block_tokens - 1) / block_tokens;
  const int32_t* bad = std::find_if(ids, end, [](int32_t id) { return id < 0; });
  if (bad == end) return Status::Ok();
  return Status::Invalid("table.ids", "id " + to_string(*bad) + " at column " +
                                          to_string(bad - ids) + " of row " + to_string(row));
}

Status CheckShape(const BlockTableView& table) {
  if (table.rows < 0 || table.columns < 0 || table.row_stride < table.columns) {
    return Status::Invalid("table.row_stride", "table of " + to_string(table.rows) + " rows, " +
                                                   to_string(table.columns) + " columns, stride " +
                                                   to_string(table.row_stride));
  }
  if (table.rows == 0) return Status::Ok();
  if (table.lens == nullptr) return Status::Invalid("table.lens", "lens is null");
  if (table.ids != nullptr || table.columns == 0) return Status::Ok();
  return Status::Invalid("table.ids", "ids is null");
}

}  // namespace

Result<BlockTable> BlockTable::FromCsr(const CsrTableView& csr, int32_t block_tokens) {
  return NoThrow("FromCsr", [&]() -> Result<BlockTable> {
    if (Status s = CheckCsr(csr, block_tokens); !s.ok()) return s;
    const size_t rows = csr.last_page_len.size();
    BlockTable made;
    for (size_t row = 0; row < rows; ++row) {
      const int32_t blocks = csr.indptr[row + 1] - csr.indptr[row];
      made.columns_ = std::max<int64_t>(made.columns_, blocks);
      made.lens_.push_back(blocks == 0 ? 0 : (blocks - 1) * block_tokens + csr.last_page_len[row]);
    }
    made.ids_.assign(rows * static_cast<size_t>(made.columns_), kNoBlock);
    for (size_t row = 0; row < rows; ++row) {
      std::copy(csr.indices.begin() + csr.indptr[row], csr.indices.begin() + csr.indptr[row + 1],
                made.ids_.begin() + static_cast<int64_t>(row) * made.columns_);
    }
    return made;
  });
}

BlockTableView BlockTable::view() const {
  return {.ids = ids_.data(),
          .row_stride = columns_,
          .rows = std::ssize(lens_),
          .columns = columns_,
          .lens = lens_.data()};
}

Result<CsrTable> CsrTable::FromRows(const BlockTableView& table, int32_t block_tokens) {
  return NoThrow("FromRows", [&]() -> Result<CsrTable> {
    if (Status s = CheckBlockTokens(block_tokens); !s.ok()) return s;
    if (Status s = CheckShape(table); !s.ok()) return s;
    CsrTable made;
    for (int64_t row = 0; row < table.rows; ++row) {
      if (Status s = CheckRowOf(table, row, block_tokens); !s.ok()) return s;
      const int32_t len = table.lens[row];
      const int32_t blocks = len / block_tokens + (len % block_tokens != 0 ? 1 : 0);
      const int32_t* ids = table.ids + row * table.row_stride;
      if (std::ssize(made.indices_) + blocks > kMaxTokens) {
        return Status::OutOfRange("table.lens", "more than 2^31 - 1 entries");
      }
      made.indices_.insert(made.indices_.end(), ids, ids + blocks);
      made.indptr_.push_back(static_cast<int32_t>(made.indices_.size()));
      made.last_page_len_.push_back(len == 0 ? 0 : len - (blocks - 1) * block_tokens);
    }
    return made;
  });
}

}  // namespace quire::kernels
