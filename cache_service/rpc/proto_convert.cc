#include "cache_service/rpc/proto_convert.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

// Far more than requests use, and little enough that the ranges of all sequences stay small.
constexpr int kMostRetentionRanges = 256;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::string Entry(const std::string& field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

absl::Status BadDuration(std::string_view field, const char* problem, int64_t given,
                         int64_t limit) {
  return ToStatus(InvalidArgument(field, problem, {{"given", given}, {"limit", limit}}));
}

}  // namespace

absl::Status CheckDuration(const google::protobuf::Duration& duration, std::string_view field) {
  // 10,000 years, as protobuf has it.
  constexpr int64_t kMostSeconds = 315'576'000'000;
  const int64_t seconds = duration.seconds();
  const int64_t nanos = duration.nanos();
  if (seconds < -kMostSeconds || seconds > kMostSeconds) {
    return BadDuration(field, "seconds out of range", seconds, kMostSeconds);
  }
  if (nanos <= -kNanosPerSecond || nanos >= kNanosPerSecond) {
    return BadDuration(field, "nanos out of range", nanos, kNanosPerSecond - 1);
  }
  const bool one_sign = (seconds >= 0 && nanos >= 0) || (seconds <= 0 && nanos <= 0);
  if (one_sign) return absl::OkStatus();
  return BadDuration(field, "nanos of another sign than seconds", nanos, 0);
}

Duration FromProto(const google::protobuf::Duration& duration) {
  constexpr int64_t kMostSeconds = Duration::max().count() / kNanosPerSecond - 4;
  const int64_t seconds = std::clamp(duration.seconds(), -kMostSeconds, kMostSeconds);
  if (seconds != duration.seconds()) return seconds > 0 ? Duration::max() : Duration::min();
  return Duration(seconds * kNanosPerSecond + duration.nanos());
}

absl::StatusOr<Duration> PositiveDuration(const google::protobuf::Duration& duration,
                                          std::string_view field) {
  if (absl::Status status = CheckDuration(duration, field); !status.ok()) return status;
  const Duration positive = FromProto(duration);
  if (positive > Duration::zero()) return positive;
  return ToStatus(InvalidArgument(field, "not positive",
                                  {{"given", positive.count()}, {"least", 1}, {"unit", "ns"}}));
}

void ToProto(Duration duration, google::protobuf::Duration* out) {
  out->set_seconds(duration.count() / kNanosPerSecond);
  out->set_nanos(static_cast<int32_t>(duration.count() % kNanosPerSecond));
}

absl::Status CheckName(std::string_view field, const std::string& name) {
  constexpr size_t kMostBytes = 255;
  if (!name.empty() && name.size() <= kMostBytes) return absl::OkStatus();
  return ToStatus(
      InvalidArgument(field, name.empty() ? "required" : "too long",
                      {{"given", name.size()}, {"limit", kMostBytes}, {"unit", "bytes"}}));
}

absl::StatusOr<NamespaceParts> FromProto(const v1::Namespace& proto, const Caller& caller) {
  NamespaceParts parts{.adapter = proto.adapter(),
                       .salt = proto.salt(),
                       .tenant = {},
                       .weights_version = proto.weights_version()};
  const absl::Status status = ResolveTenant(caller, proto.tenant(), &parts.tenant);
  if (!status.ok()) return status;
  return parts;
}

void ToProto(const NamespaceParts& parts, v1::Namespace* out) {
  out->set_adapter(parts.adapter);
  out->set_salt(parts.salt);
  out->set_tenant(parts.tenant);
  out->set_weights_version(parts.weights_version);
}

absl::StatusOr<std::vector<RetentionRange>> FromProto(const RetentionRanges& ranges,
                                                      const std::string& field) {
  if (ranges.size() > kMostRetentionRanges) {
    return ToStatus(LimitExceeded(field, "too many ranges", static_cast<uint64_t>(ranges.size()),
                                  static_cast<uint64_t>(kMostRetentionRanges)));
  }
  std::vector<RetentionRange> converted;
  converted.reserve(static_cast<size_t>(ranges.size()));
  for (const v1::RetentionRange& range : ranges) {
    if (!range.has_priority()) {
      return ToStatus(InvalidArgument(
          absl::StrCat(Entry(field, static_cast<int>(converted.size())), ".priority"), "required"));
    }
    RetentionRange& out = converted.emplace_back();
    out.start = range.start();
    if (range.has_end()) out.end = range.end();
    out.priority = range.priority();
    if (!range.has_duration()) continue;
    const std::string name =
        absl::StrCat(Entry(field, static_cast<int>(converted.size()) - 1), ".duration");
    if (absl::Status status = CheckDuration(range.duration(), name); !status.ok()) return status;
    out.duration = FromProto(range.duration());
  }
  return converted;
}

absl::StatusOr<std::vector<DigestRange>> FromProto(const DigestRanges& ranges,
                                                   const std::string& field) {
  std::vector<DigestRange> converted;
  converted.reserve(static_cast<size_t>(ranges.size()));
  for (const v1::DigestRange& range : ranges) {
    DigestRange& out = converted.emplace_back();
    if (range.digest().size() != out.digest.size()) {
      return ToStatus(InvalidArgument(
          absl::StrCat(Entry(field, static_cast<int>(converted.size()) - 1), ".digest"),
          "not 32 bytes",
          {{"given", range.digest().size()}, {"limit", out.digest.size()}, {"unit", "bytes"}}));
    }
    out.start = range.start();
    out.end = range.end();
    std::memcpy(out.digest.data(), range.digest().data(), out.digest.size());
  }
  return converted;
}

absl::StatusOr<GroupSpec> FromProto(const v1::LayerGroup& group, const std::string& field) {
  GroupSpec spec;
  spec.layers.assign(group.layers().begin(), group.layers().end());
  if (group.kind() == v1::GROUP_KIND_FULL && group.window_tokens() == 0) return spec;
  if (group.kind() == v1::GROUP_KIND_WINDOW && group.window_tokens() > 0) {
    spec.window_tokens = group.window_tokens();
    return spec;
  }
  if (!v1::GroupKind_IsValid(group.kind()) || group.kind() == v1::GROUP_KIND_UNSPECIFIED) {
    return ToStatus(InvalidArgument(absl::StrCat(field, ".kind"),
                                    "only GROUP_KIND_FULL and GROUP_KIND_WINDOW are served",
                                    {{"given", static_cast<int>(group.kind())}}));
  }
  return ToStatus(InvalidArgument(absl::StrCat(field, ".window_tokens"),
                                  "positive in a window group, 0 in a full one",
                                  {{"given", group.window_tokens()}}));
}

void ToProto(const GroupSpec& group, uint64_t padding_bytes, v1::LayerGroup* out) {
  out->set_kind(group.is_window() ? v1::GROUP_KIND_WINDOW : v1::GROUP_KIND_FULL);
  out->set_window_tokens(group.window_tokens);
  out->mutable_layers()->Add(group.layers.begin(), group.layers.end());
  out->set_padding_bytes(padding_bytes);
}

void AppendBlocks(std::span<const BlockId> blocks, v1::TableRun* out) {
  static_assert(sizeof(BlockId) == sizeof(uint32_t));
  auto* column = out->mutable_blocks();
  const int before = column->size();
  column->Resize(before + static_cast<int>(blocks.size()), 0);
  if (blocks.empty()) return;
  std::memcpy(column->mutable_data() + before, blocks.data(), blocks.size_bytes());
}

void ToProto(SequenceHandle sequence, std::span<const GroupTable> tables,
             google::protobuf::RepeatedPtrField<v1::TableRun>* out) {
  uint32_t group = 0;
  for (const GroupTable& table : tables) {
    v1::TableRun* run = out->Add();
    run->set_sequence(sequence);
    run->set_group(group++);
    AppendBlocks(table.blocks, run);
  }
}

}  // namespace quire
