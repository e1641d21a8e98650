#include "tests/kernels/gpu/report.h"

#include <algorithm>
#include <cstdio>

namespace quire::kernels::gpu {
namespace {

std::string Number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string Member(const char* key, double value) {
  if (value < 0) return "";
  return std::string(", \"") + key + "\": " + Number("%.5g", value);
}

std::string Cell(const char* format, double value, size_t width) {
  const std::string text = value < 0 ? "-" : Number(format, value);
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

std::string ToJson(const std::string& device, const std::vector<Record>& records) {
  std::string json = "{\"device\": " + Quoted(device) + ",\n \"records\": [";
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    json += (i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ") + Quoted(r.name);
    json += Member("us", r.us) + Member("gb_per_s", r.gb_per_s);
    json += Member("tflop_per_s", r.tflop_per_s) + Member("share_of_ceiling", r.share) + "}";
  }
  return json + "\n]}\n";
}

std::string ToTable(const std::vector<Record>& records) {
  size_t widest = 4;
  for (const Record& r : records) widest = std::max(widest, r.name.size());
  std::string table =
      "case" + std::string(widest - 4, ' ') + "          us      GB/s  TFLOP/s  share\n";
  for (const Record& r : records) {
    table += r.name + std::string(widest - r.name.size(), ' ') + Cell("%.1f", r.us, 12);
    table += Cell("%.1f", r.gb_per_s, 10) + Cell("%.1f", r.tflop_per_s, 9);
    table += Cell("%.0f%%", r.share < 0 ? -1 : 100 * r.share, 7) + "\n";
  }
  return table;
}

}  // namespace quire::kernels::gpu
