#include "cache_service/pool_config.h"

#include <grp.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/rpc/layout_convert.h"
#include "cache_service/rpc/pool_plan.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr uint32_t kMaxRanks = 1024;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

absl::Status Bad(const char* field, const char* problem, std::vector<ErrorDetail> numbers = {}) {
  return ToStatus(InvalidArgument(field, problem, std::move(numbers)));
}

absl::Status CheckSize(const v1::PoolConfig& config) {
  const bool shared = config.memory() == v1::POOL_MEMORY_SHARED;
  if (!shared && config.memory() != v1::POOL_MEMORY_WORKER) {
    return Bad("memory", "neither SHARED nor WORKER",
               {{"given", static_cast<int>(config.memory())}});
  }
  if (shared && config.has_block_count()) {
    return Bad("block_count", "follows from device_memory_bytes where the server has the memory");
  }
  if (!shared && config.has_device_memory_bytes()) {
    return Bad("device_memory_bytes", "a pool of worker memory is given by block_count");
  }
  const std::pair<const char*, bool> of_files[] = {
      {"memory_directory", config.has_memory_directory()},
      {"memory_mode", config.has_memory_mode()},
      {"memory_group", config.has_memory_group()}};
  for (const auto& [field, given] : of_files) {
    if (!shared && given) return Bad(field, "a pool of worker memory has no files");
  }
  if (!shared && !config.has_block_count()) {
    return Bad("block_count", "required for a pool of worker memory");
  }
  const uint32_t most_tokens = shared ? 256 : 1024;
  if (!std::has_single_bit(config.block_tokens()) || config.block_tokens() < 2 ||
      config.block_tokens() > most_tokens) {
    return Bad("block_tokens", "not a power of two in range",
               {{"given", config.block_tokens()}, {"least", 2}, {"limit", most_tokens}});
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const v1::PoolConfig& config) {
  const std::string& name = config.pool();
  if (name.size() > kMaxNameBytes || !std::ranges::all_of(name, IsNameCharacter)) {
    return Bad("pool", "only letters, digits, '.', '_' and '-', at most 64", {{"pool", name}});
  }
  if (config.ranks() < 1 || config.ranks() > kMaxRanks) {
    return Bad("ranks", "out of range",
               {{"given", config.ranks()}, {"least", 1}, {"limit", kMaxRanks}});
  }
  return absl::OkStatus();
}

absl::StatusOr<gid_t> ParseGroup(const std::string& text) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  const struct group* found = getgrnam(text.c_str());
  if (found != nullptr) return found->gr_gid;
  return Bad("memory_group", "no such group", {{"group", text}});
}

template <typename T>
void SetIfPresent(bool present, T value, T& option) {
  if (present) option = value;
}

void SetIfPresent(bool present, const google::protobuf::Duration& value, Duration& option) {
  if (present) option = FromProto(value);
}

EngineOptions ToEngineOptions(const v1::PoolConfig& config, uint64_t epoch) {
  EngineOptions engine;
  engine.pool_name = config.pool();
  engine.epoch = epoch;
  engine.block_count = config.block_count();
  engine.block_tokens = config.block_tokens();
  engine.memory =
      config.memory() == v1::POOL_MEMORY_SHARED ? PoolMemoryKind::kShared : PoolMemoryKind::kWorker;
  engine.max_sequence_tokens = config.max_sequence_tokens();
  engine.window_slack_tokens = config.window_slack_tokens();
  engine.watermark = config.watermark();
  SetIfPresent(config.has_max_steps_in_flight(), config.max_steps_in_flight(),
               engine.max_steps_in_flight);
  SetIfPresent(config.has_max_operations_per_step(), config.max_operations_per_step(),
               engine.max_operations_per_step);
  SetIfPresent(config.has_max_sequences_per_worker(), config.max_sequences_per_worker(),
               engine.max_sequences_per_worker);
  SetIfPresent(config.has_max_pins(), config.max_pins(), engine.max_pins);
  SetIfPresent(config.has_max_leases(), config.max_leases(), engine.max_leases);
  SetIfPresent(config.has_content_checks_per_run(), config.content_checks_per_run(),
               engine.content_checks_per_run);
  engine.content_sample = config.content_sample();
  SetIfPresent(config.has_default_lease(), config.default_lease(), engine.default_lease);
  SetIfPresent(config.has_max_lease(), config.max_lease(), engine.max_lease);
  // A short max_lease by itself is no mistake.
  if (!config.has_default_lease()) {
    engine.default_lease = std::min(engine.default_lease, engine.max_lease);
  }
  SetIfPresent(config.has_stream_grace(), config.stream_grace(), engine.stream_grace);
  SetIfPresent(config.has_retry_interval(), config.retry_interval(), engine.retry_interval);
  SetIfPresent(config.has_fence_timeout(), config.fence_timeout(), engine.fence_timeout);
  return engine;
}

}  // namespace

void FillDefaults(v1::PoolConfig& config) {
  if (!config.has_pool()) config.set_pool("default");
  if (config.memory() == v1::POOL_MEMORY_UNSPECIFIED) config.set_memory(v1::POOL_MEMORY_SHARED);
  if (!config.has_block_tokens()) config.set_block_tokens(16);
  if (!config.has_ranks()) config.set_ranks(1);
  if (config.memory() != v1::POOL_MEMORY_SHARED) return;
  if (!config.has_device_memory_bytes()) config.set_device_memory_bytes(uint64_t{256} << 20);
  if (!config.has_memory_directory()) config.set_memory_directory("/dev/shm");
  if (!config.has_memory_mode()) config.set_memory_mode("0600");
}

absl::StatusOr<PoolSetup> ToPoolSetup(const v1::PoolConfig& config, uint64_t epoch) {
  if (absl::Status status = CheckNames(config); !status.ok()) return status;
  if (absl::Status status = CheckSize(config); !status.ok()) return status;
  if (config.has_max_sequence_tokens() && config.max_sequence_tokens() == 0) {
    return Bad("max_sequence_tokens", "at least 1", {{"given", 0}, {"least", 1}});
  }
  PoolSetup setup;
  setup.pool.engine = ToEngineOptions(config, epoch);
  setup.pool.device_memory_bytes = config.device_memory_bytes();
  setup.pool.ranks = config.ranks();
  if (config.has_layout()) {
    auto shape = FromProto(config.layout(), config.block_tokens());
    if (!shape.ok()) return shape.status();
    if (shape->block_tokens != config.block_tokens()) {
      return Bad("layout.block_tokens", "another number than the pool's block_tokens",
                 {{"given", shape->block_tokens}, {"limit", config.block_tokens()}});
    }
    setup.pool.shape = *std::move(shape);
  }
  if (absl::Status status = CheckPool(setup.pool); !status.ok()) return status;
  if (config.memory() != v1::POOL_MEMORY_SHARED) return setup;
  setup.memory.directory = config.memory_directory();
  const auto mode = ParseMode("memory_mode", config.memory_mode());
  if (!mode.ok()) return mode.status();
  setup.memory.mode = *mode;
  if (!config.has_memory_group()) return setup;
  const auto group = ParseGroup(config.memory_group());
  if (!group.ok()) return group.status();
  setup.memory.group = *group;
  return setup;
}

absl::StatusOr<mode_t> ParseMode(const char* field, const std::string& text) {
  mode_t mode = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, mode, 8);
  if (error == std::errc() && rest == end && mode <= 0777) return mode;
  return Bad(field, "not octal permissions up to 0777", {{"given", text}});
}

}  // namespace quire
