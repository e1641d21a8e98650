// Block tables as FlashInfer and others pass them: all ids in one array, with row offsets (CSR).
//
//   row i: indices[indptr[i] .. indptr[i + 1]), of which the last block holds last_page_len[i]
//   tokens
//
// Backends take BlockTableView; these convert, and refuse what does not convert. Every backend
// reads tables from host memory, so one adapter serves them all.
#ifndef QUIRE_KERNELS_CSR_TABLE_H_
#define QUIRE_KERNELS_CSR_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace quire::kernels {

struct CsrTableView {
  std::span<const int32_t> indptr;   // [rows + 1], from 0 to indices.size(), never falling
  std::span<const int32_t> indices;  // block ids; kNoBlock where a window has passed
  // [rows], 1..block_tokens. A row without tokens has no entry in indices; its value is not read.
  std::span<const int32_t> last_page_len;
};

// Owns the arrays that view() points into; may be moved, the views stay valid.
class BlockTable {
 public:
  // Refuses arrays that contradict each other, and lengths past 2^31 - 1. Ids are checked by the
  // call that gets the table, which knows the pool and what queries see.
  static Result<BlockTable> FromCsr(const CsrTableView& csr, int32_t block_tokens);

  BlockTableView view() const;

 private:
  std::vector<int32_t> ids_;
  std::vector<int32_t> lens_;
  int64_t columns_ = 0;
};

class CsrTable {
 public:
  // The entries that lens covers. Refuses lengths outside the table and, as readers of CSR mask
  // windows but read every id, kNoBlock among the entries.
  static Result<CsrTable> FromRows(const BlockTableView& table, int32_t block_tokens);

  CsrTableView view() const { return {indptr_, indices_, last_page_len_}; }

 private:
  std::vector<int32_t> indptr_ = {0};
  std::vector<int32_t> indices_;
  std::vector<int32_t> last_page_len_;
};

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_CSR_TABLE_H_
