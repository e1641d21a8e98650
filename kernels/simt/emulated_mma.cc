#include <cstring>

#include "kernels/simt/simt.h"

namespace quire::kernels::emulated {
namespace {

constexpr int kM = 16;
constexpr int kN = 8;
constexpr int kK = 16;

struct Operands {
  float a[kM][kK];
  float b[kK][kN];
};

// As Fp16ToFloat, without branches on the exponent: this is most of the emulator's time.
float Half(uint32_t bits, bool is_bf16) {
  if (is_bf16) return AsFloat(bits << 16);
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  const bool is_finite = (bits & 0x7c00u) != 0x7c00u;
  const uint32_t value =
      is_finite ? AsBits(AsFloat(magnitude) * 0x1p112f) : magnitude | 0x7f800000u;
  return AsFloat(value | (bits & 0x8000u) << 16);
}

// Which element each lane's registers hold: PTX ISA, fragments of mma.m16n8k16.
void Unpack(const Exchange& exchange, bool is_bf16, Operands* to) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    for (int i = 0; i < 8; ++i) {
      const float value = Half(exchange.a[lane][i / 2] >> (i % 2 * 16), is_bf16);
      to->a[row + i / 2 % 2 * 8][column + i / 4 * 8 + i % 2] = value;
    }
    for (int i = 0; i < 4; ++i) {
      to->b[column + i / 2 * 8 + i % 2][row] =
          Half(exchange.b[lane][i / 2] >> (i % 2 * 16), is_bf16);
    }
  }
}

void Multiply(const Operands& operands, Exchange* exchange) {
  for (int row = 0; row < kM; ++row) {
    float sums[kN] = {};
    for (int k = 0; k < kK; ++k) {
      for (int n = 0; n < kN; ++n) sums[n] += operands.a[row][k] * operands.b[k][n];
    }
    for (int n = 0; n < kN; ++n) exchange->c[row % 8 * 4 + n / 2][row / 8 * 2 + n % 2] += sums[n];
  }
}

uint16_t ReadHalf(const std::byte* from) {
  uint16_t half = 0;
  std::memcpy(&half, from, sizeof(half));
  return half;
}

void Distribute(Exchange* exchange, int matrices, bool transposed) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    for (int m = 0; m < matrices; ++m) {
      uint32_t& out = exchange->out[lane][m];
      const std::byte* const* rows = exchange->address + 8 * m;
      if (transposed) {
        out = ReadHalf(rows[column] + 2 * row) |
              static_cast<uint32_t>(ReadHalf(rows[column + 1] + 2 * row)) << 16;
      } else {
        std::memcpy(&out, rows[row] + 2 * column, sizeof(out));
      }
    }
  }
}

}  // namespace

void LoadMatrices(uint32_t* out, const void* row, int matrices, bool transposed, int line) {
  Emulator& emulator = Emulator::Current();
  const int lane = emulator.self().index % kWarpSize;
  if (lane < 8 * matrices) {
    emulator.CheckAligned(row, "ldmatrix row");
    emulator.CheckShared(row, 16, "ldmatrix row");
  }
  Exchange& exchange = emulator.Enter(Op::kLoadMatrix, line);
  exchange.address[lane] = static_cast<const std::byte*>(row);
  if (emulator.Meet()) {
    Distribute(&exchange, matrices, transposed);
    emulator.Release();
  }
  for (int m = 0; m < matrices; ++m) out[m] = exchange.out[lane][m];
}

void Mma(float* c, const uint32_t* a, const uint32_t* b, bool is_bf16, int line) {
  Emulator& emulator = Emulator::Current();
  const int lane = emulator.self().index % kWarpSize;
  Exchange& exchange = emulator.Enter(Op::kMma, line);
  std::memcpy(exchange.a[lane], a, sizeof(exchange.a[lane]));
  std::memcpy(exchange.b[lane], b, sizeof(exchange.b[lane]));
  std::memcpy(exchange.c[lane], c, sizeof(exchange.c[lane]));
  if (emulator.Meet()) {
    Operands operands;
    Unpack(exchange, is_bf16, &operands);
    Multiply(operands, &exchange);
    emulator.Release();
  }
  std::memcpy(c, exchange.c[lane], sizeof(exchange.c[lane]));
}

}  // namespace quire::kernels::emulated
