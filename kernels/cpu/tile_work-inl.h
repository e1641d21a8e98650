// The two products of a tile, for few query rows and for many.
#if defined(QUIRE_KERNELS_CPU_TILE_WORK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_KERNELS_CPU_TILE_WORK_INL_H_
#undef QUIRE_KERNELS_CPU_TILE_WORK_INL_H_
#else
#define QUIRE_KERNELS_CPU_TILE_WORK_INL_H_
#endif

#include "kernels/cpu/floats-inl.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/head_tile-inl.h"
#include "kernels/cpu/rows-inl.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {

// What is done to a tile: Scores, Softmax, Sums. Few rows: as they are stored.
template <typename A, int kBlockRows>
struct RowWork {
  using Arithmetic = A;
  static constexpr int kRows = kBlockRows;

  static void Scores(const Task& task, HeadTile& tile) {
    const auto rows = static_cast<size_t>(task.padded_rows());
    DotRows<A, kRows>(tile.view, {tile.state.q, rows, task.head_dim}, task.rows,
                      task.scratch.scores);
  }

  static void Sums(const Task& task, const HeadTile& tile) {
    SumRows<A, kRows>(tile.view, task.scratch.weights, task.rows, task.head_dim, tile.state.out);
  }
};

// As matrices, fp32.
template <DType kType>
struct MatrixWork {
  using Arithmetic = Floats<kType>;
  static constexpr int kRows = 1;

  static void Scores(const Task& task, HeadTile& tile) {
    const AttentionScratch& scratch = task.scratch;
    LoadTile<kType>(tile.view, task.head_dim, scratch.k_tile, scratch.v_tile);
    MultiplyAll({tile.state.q, task.head_dim, scratch.k_tile, kPlanTileTokens, task.head_dim,
                 task.scratch.scores, kPlanTileTokens, false},
                task.padded_rows(), kPlanTileTokens);
  }

  static void Sums(const Task& task, const HeadTile& tile) {
    MultiplyAll({task.scratch.weights, kPlanTileTokens, task.scratch.v_tile, task.head_dim,
                 static_cast<size_t>(tile.view.tokens), tile.state.out, task.head_dim, true},
                task.padded_rows(), task.head_dim);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#endif  // include guard
