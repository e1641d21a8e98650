#include "worker/model/linear.h"

#include <cblas.h>

#include <algorithm>
#include <utility>

namespace quire::model {
namespace {

constexpr int32_t kLargestTile = 16;

}  // namespace

void SetMatrixThreads(int threads) { openblas_set_num_threads(threads); }

Linear::Linear(std::vector<float> weight, int32_t out, int32_t in)
    : weight_(std::move(weight)), out_(out), in_(in) {
  for (tile_ = kLargestTile; tile_ > 1 && !RowsAgree(tile_);) tile_ /= 2;
}

// One row in every place of a tile has to give one result.
bool Linear::RowsAgree(int32_t rows) const {
  std::vector<float> x;
  for (int32_t i = 0; i < rows; ++i) x.insert(x.end(), row(0), row(0) + in_);
  std::vector<float> y(static_cast<size_t>(rows) * static_cast<size_t>(out_));
  ApplyTile(x.data(), rows, y.data());
  return std::equal(y.begin() + out_, y.end(), y.begin());
}

void Linear::Apply(const float* x, int32_t rows, float* y) const {
  const int32_t whole = rows - rows % tile_;
  for (int32_t row = 0; row < whole; row += tile_) {
    ApplyTile(x + int64_t{row} * in_, tile_, y + int64_t{row} * out_);
  }
  if (whole == rows) return;
  std::vector<float> padded_x(static_cast<size_t>(tile_) * static_cast<size_t>(in_), 0.0f);
  std::vector<float> padded_y(static_cast<size_t>(tile_) * static_cast<size_t>(out_));
  std::copy(x + int64_t{whole} * in_, x + int64_t{rows} * in_, padded_x.begin());
  ApplyTile(padded_x.data(), tile_, padded_y.data());
  std::copy_n(padded_y.begin(), int64_t{rows - whole} * out_, y + int64_t{whole} * out_);
}

void Linear::ApplyTile(const float* x, int32_t rows, float* y) const {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, out_, in_, 1.0f, x, in_,
              weight_.data(), in_, 0.0f, y, out_);
}

}  // namespace quire::model
