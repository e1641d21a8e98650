// Matrix products whose result for a row does not depend on the rows beside it.
#ifndef QUIRE_WORKER_MODEL_LINEAR_H_
#define QUIRE_WORKER_MODEL_LINEAR_H_

#include <cstdint>
#include <vector>

namespace quire::model {

// Threads of the matrix library, for the whole process.
void SetMatrixThreads(int threads);

// y = x W^T for W of [out][in]. Immutable after construction; Apply is thread-compatible.
//
// Every product is cut into tiles of one number of rows, the last one filled up with zeros, so that
// the library always sees one shape. Where it sums the rows of a tile in different orders, which
// depends on the processor and the size, tiles are smaller. A token then has the same bits alone,
// in a batch, or inside a chunk of any length.
class Linear {
 public:
  Linear() = default;
  Linear(std::vector<float> weight, int32_t out, int32_t in);

  // x: [rows][in], y: [rows][out], both dense and distinct.
  void Apply(const float* x, int32_t rows, float* y) const;

  int32_t in() const { return in_; }

  int32_t out() const { return out_; }

  const float* row(int32_t index) const { return weight_.data() + int64_t{index} * in_; }

 private:
  void ApplyTile(const float* x, int32_t rows, float* y) const;
  bool RowsAgree(int32_t rows) const;

  std::vector<float> weight_;
  int32_t out_ = 0;
  int32_t in_ = 0;
  int32_t tile_ = 1;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_LINEAR_H_
