// Tiles of K and V in shared memory, and the register fragments that tensor cores take from them.
//
// A tile is 16 tokens of one KV head: 16 rows of K, 16 of V, then their scales (16 and 16 floats,
// used if scales are per token). Rows are an odd number of 16-byte chunks apart, which makes
// ldmatrix free of bank conflicts for every head size.
//
// One-byte types keep their bytes in shared memory and become fp16 in registers. ldmatrix hands a
// lane four neighbouring bytes where a 16-bit type would give two elements, so lane c of a quad
// holds dimensions 4c..4c+3 of each 16: queries are permuted to match, and so is the output.
#ifndef QUIRE_KERNELS_CUDA_FRAG_CUH_
#define QUIRE_KERNELS_CUDA_FRAG_CUH_

#include "kernels/cuda/args.h"
#include "kernels/dtype.h"
#include "kernels/simt/simt.h"

namespace quire::kernels::QUIRE_SIMT {

using device::AttentionArgs;
using device::AttentionItem;
using device::MergeArgs;
using device::MergeRow;
using device::RowTensor;

constexpr int kTileTokens = 16;
constexpr int kWarpRows = 16;  // query rows of one mma

template <DType kStored, int kHeadDim>
struct Tile {
  static constexpr DType kType = kStored;
  static constexpr int kDim = kHeadDim;
  static constexpr int kBytes = static_cast<int>(ElementBytes(kStored));
  static constexpr bool kNarrow = kBytes == 1;
  static constexpr int kChunks = kDim * kBytes / 16;  // of a row
  // Lanes that load one row together, and rows that a warp loads at once.
  static constexpr int kRowLanes = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
  static constexpr int kRowsAtOnce = kWarpLanes / kRowLanes;
  static constexpr int kPitch = (kChunks | 1) * 16;
  static constexpr int kRowsBytes = kTileTokens * kPitch;
  static constexpr int kScales = 2 * kRowsBytes;
  static constexpr int kTileBytes = kScales + 2 * kTileTokens * 4;
  static constexpr int kSteps = kDim / 16;  // mma steps over the dimensions
  // Query fragments of the first steps stay in shared memory, for want of registers.
  static constexpr int kSharedSteps = kDim <= 64 ? kSteps : kDim > 192 ? 10 : kSteps / 2;
  static constexpr int kStepBytes = kWarpLanes * 16;
  static constexpr int kQueryBytes = kSharedSteps * kStepBytes;  // of a warp
  // What a thread may use, so that four, two or two CTAs of 128 fit a multiprocessor.
  static constexpr int kRegisters = kDim <= 64 ? 120 : kDim <= 128 ? 184 : 255;

  static_assert(kBytes < 4, "fp32 has its own kernel");

  SIMT_DEVICE static void Mma(float* c, const uint32_t* a, const uint32_t* b) {
    if constexpr (kType == DType::kBF16) {
      MmaBf16(c, a, b);
    } else {
      MmaF16(c, a, b);
    }
  }

  SIMT_DEVICE static uint32_t Pack(float low, float high) {
    return kType == DType::kBF16 ? PackBf16(low, high) : PackF16(low, high);
  }

  SIMT_DEVICE static float Unpack(uint32_t half) {
    return kType == DType::kBF16 ? Bf16ToFloat(static_cast<uint16_t>(half))
                                 : F16ToFloat(static_cast<uint16_t>(half));
  }

  SIMT_DEVICE static uint32_t Widen(uint32_t pair) {
    return kType == DType::kE4M3 ? E4m3PairToF16(pair) : I8PairToF16(pair);
  }

  // First dimension, inside step `step`, of pair 0 or 1 that this lane's A and B fragments hold.
  SIMT_DEVICE static int PairDim(int step, int pair) {
    const int c = Lane() % 4;
    return step * 16 + (kNarrow ? 4 * c + 2 * pair : 2 * c + 8 * pair);
  }

  // Dimension of accumulator column tile `n`, element e (0 or 1 of the pair) in this lane.
  SIMT_DEVICE static int OutDim(int n, int e) {
    const int column = 2 * (Lane() % 4) + e;
    return kNarrow ? n / 2 * 16 + 2 * column + n % 2 : n * 8 + column;
  }
};

// CTAs of one part follow each other.
SIMT_DEVICE int KvHead(const AttentionArgs& args) {
  return static_cast<int>(CtaIndex() % args.layout.kv_heads);
}

// One KV head of one sequence. Strides stay in the arguments, which cost no registers.
struct KvRun {
  const std::byte* k;
  const int32_t* ids;
  int end;  // keys at and past it do not exist
};

SIMT_DEVICE KvRun RunOf(const AttentionArgs& args, const AttentionItem& item, int kv_head) {
  const int64_t row = args.layout.RowOffset(0, args.layer, kv_head, false, 0);
  return {args.pool + row * ElementBytes(args.layout.dtype),
          args.ids + item.table_row * args.ids_stride, item.kv_end};
}

SIMT_DEVICE bool HasTokenScales(const AttentionArgs& args) {
  return args.layout.scale_kind == ScaleKind::kPerToken;
}

// Lanes 0..15 request the scale of K, the others of V, of token `position`.
template <typename T>
SIMT_DEVICE void LoadScales(const AttentionArgs& args, const KvRun& run, int position,
                            int64_t block, std::byte* tile) {
  const int slot = position & (args.layout.block_tokens() - 1);
  const bool is_v = Lane() >= kTileTokens;
  const int64_t at = args.layout.ScaleOffset(block, args.layer, KvHead(args), is_v, slot);
  CopyAsync4(tile + T::kScales + Lane() * 4, reinterpret_cast<const float*>(args.pool) + at,
             position < run.end);
}

// One warp requests 16 tokens from position `begin` on. Tokens past the end become zeros: a hidden
// score is selected away, but 0 times an unwritten V could be NaN.
template <typename T>
SIMT_DEVICE void LoadTile(const AttentionArgs& args, const KvRun& run, int begin, std::byte* tile) {
  const PagedKvLayout& layout = args.layout;
  const int own = begin + Lane() % kTileTokens;
  const int own_block = own < run.end ? run.ids[own >> layout.log2_block_tokens] : 0;
  const int64_t v_bytes = (layout.v_offset - layout.k_offset) * T::kBytes;
  const int first_chunk = Lane() % T::kRowLanes;
  SIMT_UNROLL
  for (int i = 0; i < kTileTokens / T::kRowsAtOnce; ++i) {
    const int token = Lane() / T::kRowLanes + i * T::kRowsAtOnce;
    const int64_t block = Shuffle(static_cast<uint32_t>(own_block), token);
    const int slot = (begin + token) & (layout.block_tokens() - 1);
    const bool exists = begin + token < run.end;
    const std::byte* from =
        run.k + (block * layout.block_stride + slot * layout.token_stride) * T::kBytes;
    std::byte* to = tile + token * T::kPitch;
    SIMT_UNROLL
    for (int chunk = 0; chunk < T::kChunks; chunk += T::kRowLanes) {
      const int at = (chunk + first_chunk) * 16;
      if (chunk + first_chunk >= T::kChunks) continue;
      CopyAsync16(to + at, from + at, exists);
      CopyAsync16(to + at + T::kRowsBytes, from + at + v_bytes, exists);
    }
  }
  if (HasTokenScales(args)) LoadScales<T>(args, run, own, own_block, tile);
}

// B fragments of K for one step: b[0..1] for tokens 0..7, b[2..3] for tokens 8..15.
template <typename T>
SIMT_DEVICE void LoadKeys(const std::byte* tile, int step, uint32_t* b) {
  const int lane = Lane();
  if constexpr (T::kNarrow) {
    uint32_t bytes[2];
    LoadMatrix2(bytes, tile + lane % 16 * T::kPitch + step * 16);
    for (int half = 0; half < 2; ++half) {
      b[2 * half] = T::Widen(bytes[half] & 0xffffu);
      b[2 * half + 1] = T::Widen(bytes[half] >> 16);
    }
  } else {
    const int token = lane / 16 * 8 + lane % 8;
    LoadMatrix4(b, tile + token * T::kPitch + step * 32 + lane / 8 % 2 * 16);
  }
}

// B fragments of V for 16 dimensions: b[0..1] for column tile 2 * step, b[2..3] for the next.
template <typename T>
SIMT_DEVICE void LoadValues(const std::byte* tile, int step, uint32_t* b) {
  const std::byte* rows = tile + T::kRowsBytes;
  const int lane = Lane();
  if constexpr (T::kNarrow) {
    uint32_t bytes[2];
    LoadMatrixTransposed2(bytes, rows + lane % 16 * T::kPitch + step * 16);
    for (int half = 0; half < 2; ++half) {
      const uint32_t x = bytes[half];  // two dimensions of one token, then of the next
      b[half] = T::Widen((x & 0xffu) | ((x >> 8) & 0xff00u));
      b[2 + half] = T::Widen(((x >> 8) & 0xffu) | ((x >> 16) & 0xff00u));
    }
  } else {
    LoadMatrixTransposed4(b, rows + lane % 16 * T::kPitch + step * 32 + lane / 16 * 16);
  }
}

// 16 scales of K, then of V, of tile `t` of several.
template <typename T>
SIMT_DEVICE const float* ScalesOf(const std::byte* tiles, int t) {
  return reinterpret_cast<const float*>(tiles + t * T::kTileBytes + T::kScales);
}

SIMT_DEVICE float LoadFloat(DType dtype, const std::byte* data, int64_t index) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(data)[index];
  const uint16_t half = reinterpret_cast<const uint16_t*>(data)[index];
  return dtype == DType::kBF16 ? Bf16ToFloat(half) : Fp16ToFloat(half);
}

SIMT_DEVICE void StoreFloat(DType dtype, std::byte* data, int64_t index, float value) {
  if (dtype == DType::kF32) {
    reinterpret_cast<float*>(data)[index] = value;
    return;
  }
  const uint32_t half = dtype == DType::kBF16 ? PackBf16(value, 0.0f) : PackF16(value, 0.0f);
  reinterpret_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(half);
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_FRAG_CUH_
