#include <cstdlib>
#include <utility>

#include "kernels/simt/emulated_runtime.h"
#include "tests/kernels/testing/backends.h"

namespace quire::kernels::testing {
namespace {

using emulated::CopyVisibility;

struct Variant {
  const char* name;
  emulated::EmulatorOptions options;
};

// The strictest first: it is the one outside ForEachTarget.
constexpr Variant kVariants[] = {
    {"copies visible at the next sync", {CopyVisibility::kAtSync, false}},
    {"copies visible at the wait, last warp first", {CopyVisibility::kAtWait, true}},
    {"copies visible at once", {CopyVisibility::kAtIssue, false}},
};

const Variant* current = kVariants;

}  // namespace

std::string TestedName() { return "emulated"; }

bool IsSlow() { return true; }

std::unique_ptr<Backend> MakeTested(int) {
  auto backend = emulated::MakeBackend({.emulator = current->options});
  if (!backend.ok()) std::abort();
  return std::move(*backend);
}

void ForEachTarget(const std::function<void(const std::string& name)>& body) {
  for (const Variant& variant : kVariants) {
    current = &variant;
    body(variant.name);
  }
  current = kVariants;
}

}  // namespace quire::kernels::testing
