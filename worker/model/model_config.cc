#include "worker/model/model_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quire::model {
namespace {

struct Size {
  const char* field;
  int32_t value;
  int32_t most;
};

absl::Status CheckSize(const Size& size) {
  if (size.value > 0 && size.value <= size.most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(size.field, " ", size.value, ": not from 1 to ", size.most));
}

absl::Status ValidateHeads(const ModelConfig& config) {
  if (config.q_heads % config.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("q_heads ", config.q_heads, " is no multiple of kv_heads ", config.kv_heads));
  }
  if (!kernels::IsSupportedHeadDim(config.head_dim)) {
    return absl::InvalidArgumentError(
        absl::StrCat("head_dim ", config.head_dim, " is none of 64, 80, 96, 128, 192, 256"));
  }
  const kernels::DType dtype = config.kv_dtype;
  if (dtype != kernels::DType::kF32 && dtype != kernels::DType::kF16 &&
      dtype != kernels::DType::kBF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv_dtype ", kernels::Name(dtype), " is none of fp32, fp16, bf16"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const ModelConfig& config) {
  // Above what models have, and low enough that products of all fit into 64 bits.
  const Size sizes[] = {
      {"layers", config.layers, 1 << 10},        {"hidden", config.hidden, 1 << 16},
      {"q_heads", config.q_heads, 1 << 12},      {"kv_heads", config.kv_heads, 1 << 12},
      {"head_dim", config.head_dim, 1 << 8},     {"ffn", config.ffn, 1 << 20},
      {"vocabulary", config.vocabulary, 1 << 22}};
  for (const Size& size : sizes) {
    if (absl::Status status = CheckSize(size); !status.ok()) return status;
  }
  if (absl::Status status = ValidateHeads(config); !status.ok()) return status;
  if (!config.layer_windows.empty() &&
      config.layer_windows.size() != static_cast<size_t>(config.layers)) {
    return absl::InvalidArgumentError(absl::StrCat("layer_windows has ",
                                                   config.layer_windows.size(), " entries for ",
                                                   config.layers, " layers"));
  }
  return absl::OkStatus();
}

uint64_t WeightBytes(const ModelConfig& config) {
  const auto hidden = static_cast<uint64_t>(config.hidden);
  const auto q_and_o = 2 * static_cast<uint64_t>(config.q_width());
  const auto k_and_v = 2 * static_cast<uint64_t>(config.kv_width());
  const auto feed_forward = 3 * static_cast<uint64_t>(config.ffn);
  const uint64_t heads = config.tied_head ? 1 : 2;
  return sizeof(float) * hidden *
         (static_cast<uint64_t>(config.layers) * (q_and_o + k_and_v + feed_forward) +
          heads * static_cast<uint64_t>(config.vocabulary));
}

std::vector<uint32_t> FiveToOneWindows(int32_t layers, uint32_t window) {
  std::vector<uint32_t> windows(static_cast<size_t>(layers), window);
  for (size_t layer = 5; layer < windows.size(); layer += 6) windows[layer] = 0;
  return windows;
}

std::string Fingerprint(const ModelConfig& config, const std::string& weights) {
  return absl::StrCat("quire-decoder l", config.layers, " h", config.hidden, " q", config.q_heads,
                      " kv", config.kv_heads, " d", config.head_dim, " f", config.ffn, " v",
                      config.vocabulary, " theta", config.rope_theta, " eps", config.norm_epsilon,
                      config.tied_head ? " tied" : " untied", " windows[",
                      absl::StrJoin(config.layer_windows, ","), "] weights ", weights);
}

}  // namespace quire::model
