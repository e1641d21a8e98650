#include "kernels/check_tensor.h"

#include <cmath>
#include <limits>
#include <string>

namespace quire::kernels {
namespace {

using std::to_string;

constexpr float kInf = std::numeric_limits<float>::infinity();

bool IsAligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

// Elements from the first to the last of `count` runs; false if that is past all memory.
bool AddAxis(int64_t count, int64_t stride, int64_t* extent) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 8;
  int64_t span = 0;
  return !__builtin_mul_overflow(count - 1, stride, &span) &&
         !__builtin_add_overflow(*extent, span, extent) && *extent <= kMost;
}

// The stride that makes two runs meet: "row", "head" or null.
const char* Overlapping(const TensorArgument& t) {
  if (t.rows > 1 && t.row_stride < t.run) return t.row_name;
  if (t.heads > 1 && t.head_stride < t.run) return "head";
  if (t.rows == 1 || t.heads == 1) return nullptr;
  if (t.row_stride >= t.head_stride) {
    return t.row_stride < (t.heads - 1) * t.head_stride + t.run ? t.row_name : nullptr;
  }
  return t.head_stride < (t.rows - 1) * t.row_stride + t.run ? "head" : nullptr;
}

Status BadStride(const TensorArgument& t, const char* axis, const char* why) {
  return Status::Invalid(std::string(t.name) + "_" + axis + "_stride",
                         "strides " + to_string(t.row_stride) + ", " + to_string(t.head_stride) +
                             " for " + to_string(t.rows) + " x " + to_string(t.heads) +
                             " runs of " + to_string(t.run) + " elements " + why);
}

Status CheckEach(const char* argument, const float* values, int64_t count, bool (*is_good)(float),
                 const char* what) {
  for (int64_t i = 0; i < count; ++i) {
    if (is_good(values[i])) continue;
    return Status::Invalid(argument,
                           to_string(values[i]) + " at " + to_string(i) + " is not " + what);
  }
  return Status::Ok();
}

}  // namespace

Status CheckFloatType(const char* argument, DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) return Status::Ok();
  return Status::Invalid(
      argument, "type code " + to_string(static_cast<int>(dtype)) + ", must be fp32, fp16 or bf16");
}

Status CheckTensor(const TensorArgument& t) {
  if (t.rows == 0) return Status::Ok();
  if (t.data == nullptr) return Status::Invalid(t.name, "is null");
  if (!IsAligned(t.data, ElementBytes(t.dtype))) {
    return Status::Invalid(
        t.name, "is not aligned to its elements of " + to_string(ElementBytes(t.dtype)) + " bytes");
  }
  if (t.row_stride < 0) return BadStride(t, t.row_name, "are negative");
  if (t.head_stride < 0) return BadStride(t, "head", "are negative");
  int64_t extent = t.run;
  if (!AddAxis(t.heads, t.head_stride, &extent)) return BadStride(t, "head", "end past all memory");
  if (!AddAxis(t.rows, t.row_stride, &extent)) {
    return BadStride(t, t.row_name, "end past all memory");
  }
  const char* const axis = t.written ? Overlapping(t) : nullptr;
  return axis != nullptr ? BadStride(t, axis, "overlap") : Status::Ok();
}

Status CheckScales(const char* argument, const float* scales, const PagedKvLayout& layout) {
  const bool per_head = layout.scale_kind == ScaleKind::kPerHead;
  if (!per_head && layout.scale_kind != ScaleKind::kPerTensor) return Status::Ok();
  if (scales == nullptr) return Status::Invalid(argument, "is null, the layout needs scales");
  return CheckEach(
      argument, scales, per_head ? layout.kv_heads : 1,
      [](float scale) { return scale > 0 && scale < kInf; }, "positive and finite");
}

Status CheckSlopes(const char* argument, const float* slopes, int64_t heads) {
  if (slopes == nullptr) return Status::Ok();
  return CheckEach(
      argument, slopes, heads, [](float slope) { return std::isfinite(slope); }, "finite");
}

Status CheckSinks(const char* argument, const float* sinks, int64_t heads) {
  if (sinks == nullptr) return Status::Ok();
  return CheckEach(
      argument, sinks, heads, [](float sink) { return sink < kInf; }, "finite or -inf");
}

}  // namespace quire::kernels
