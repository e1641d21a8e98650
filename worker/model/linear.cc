#include "worker/model/linear.h"

#include <cblas.h>

#include <algorithm>
#include <utility>

namespace quire::model {

void SetMatrixThreads(int threads) { openblas_set_num_threads(threads); }

Linear::Linear(std::vector<float> weight, int32_t out, int32_t in)
    : weight_(std::move(weight)), out_(out), in_(in) {}

void Linear::Apply(const float* x, int32_t rows, float* y) const {
  const int32_t whole = rows - rows % kRowTile;
  for (int32_t row = 0; row < whole; row += kRowTile) {
    ApplyTile(x + int64_t{row} * in_, y + int64_t{row} * out_);
  }
  if (whole == rows) return;
  std::vector<float> padded_x(static_cast<size_t>(kRowTile) * static_cast<size_t>(in_), 0.0f);
  std::vector<float> padded_y(static_cast<size_t>(kRowTile) * static_cast<size_t>(out_));
  std::copy(x + int64_t{whole} * in_, x + int64_t{rows} * in_, padded_x.begin());
  ApplyTile(padded_x.data(), padded_y.data());
  std::copy_n(padded_y.begin(), int64_t{rows - whole} * out_, y + int64_t{whole} * out_);
}

void Linear::ApplyTile(const float* x, float* y) const {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kRowTile, out_, in_, 1.0f, x, in_,
              weight_.data(), in_, 0.0f, y, out_);
}

}  // namespace quire::model
