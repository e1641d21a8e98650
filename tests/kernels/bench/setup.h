// What the cases of the bench share: time, machine peaks, and a batch on a filled pool.
#ifndef QUIRE_TESTS_KERNELS_BENCH_SETUP_H_
#define QUIRE_TESTS_KERNELS_BENCH_SETUP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::bench {

// CPU seconds that all threads of the process spend in body.
double Time(const std::function<void()>& body);

double Median(std::vector<double> values);

// Per core, from one short run each while `threads` of them run.
struct Peaks {
  double stream_gb;
  double gfma;
};

Peaks MeasurePeaks(const KvPoolView& pool, int threads);

// Ends the program on an error.
void Check(const Status& status);

// A pool filled with realistic values and sequences over shuffled blocks of it.
class Setup {
 public:
  Setup(const LayoutParams& params, int64_t pool_mib);

  // `rows` sequences (fewer if the pool is full) of kv tokens with q new ones each.
  void SetBatch(int64_t rows, int32_t kv, int32_t q, int32_t q_heads, DType dtype);

  void Plan(Backend& backend);

  // On the next layer each time.
  void Attend(Backend& backend);

  void AttendFirstVersion();

  // Reads K and V of the next but one layer once, block after block of the tables, on that many
  // threads.
  void ReadInOrder(int threads) const;

  // Lets every sequence use the same few blocks, of at most `bytes` a layer; 0: its own again.
  void RepeatBlocks(int64_t bytes);

  // Bytes of K and V that one layer of the batch holds.
  double KvBytes() const;

  double Flops() const;

  const KvPoolView& pool() const { return pool_.view(); }

  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  int64_t LayerBytes() const;  // of a block

  testing::TestPool pool_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> repeated_;
  std::vector<int32_t> lens_;
  std::vector<int32_t> cu_;
  std::vector<float> scales_ = std::vector<float>(64, 0.5f);
  std::vector<std::byte> q_;
  std::vector<std::byte> out_;
  std::vector<std::byte> workspace_;
  BlockTableView table_;
  AttentionParams params_;
  AttentionPlan plan_;
};

}  // namespace quire::kernels::bench

#endif  // QUIRE_TESTS_KERNELS_BENCH_SETUP_H_
