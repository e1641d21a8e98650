#include "worker/model/model_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quire::model {
namespace {

absl::Status Positive(const char* field, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be positive, is ", value));
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
  const std::pair<const char*, int32_t> sizes[] = {
      {"layers", config.layers},        {"hidden", config.hidden},     {"q_heads", config.q_heads},
      {"kv_heads", config.kv_heads},    {"head_dim", config.head_dim}, {"ffn", config.ffn},
      {"vocabulary", config.vocabulary}};
  for (const auto& [field, value] : sizes) {
    if (absl::Status status = Positive(field, value); !status.ok()) return status;
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
