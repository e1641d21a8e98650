// One fault was put into the kernels that this program was built from (CMakeLists.txt). The
// emulator must show it: as a fault with CTA and thread, or as wrong numbers. "none" must pass.
#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/calls.h"
#include "tests/kernels/testing/attention_case.h"

namespace quire::kernels {
namespace emulated {
namespace {

void Refuse(Job& job) { job.Fail(Status::Invalid("head_dim", "mutants have head_dim 64 only")); }

}  // namespace

// Other head sizes are not built with the fault.
#define QUIRE_NO_HEAD_DIM(dim)                                                        \
  template <>                                                                         \
  void LaunchAttention<dim>(Job & job, bool, int64_t, const device::AttentionArgs&) { \
    Refuse(job);                                                                      \
  }
QUIRE_NO_HEAD_DIM(80)
QUIRE_NO_HEAD_DIM(96)
QUIRE_NO_HEAD_DIM(128)
QUIRE_NO_HEAD_DIM(192)
QUIRE_NO_HEAD_DIM(256)
#undef QUIRE_NO_HEAD_DIM

}  // namespace emulated

namespace testing {
namespace {

// Several tiles per warp, a tail, rows for the decode and for the append kernel.
CaseParams Shapes() {
  CaseParams params;
  params.sequences = {{300, 1}, {77, 1}, {333, 40}, {1, 1}};
  params.q_heads = 4;
  params.kv_heads = 2;
  params.head_dim = 64;
  // Kernels point at it for tokens that do not exist.
  params.spare_block_zero = true;
  return params;
}

// What is wrong, per moment at which copies become visible.
std::vector<std::string> FindFaults() {
  AttentionCase test(Shapes());
  test.ComputeReference();
  std::vector<std::string> faults;
  ForEachTarget([&](const std::string& variant) {
    const Status status = test.Run(*MakeTested(), AttentionCase::Plans()[0]);
    const std::string fault = status.ok() ? test.Compare() : status.message();
    if (!fault.empty()) faults.push_back(variant + ": " + fault);
  });
  return faults;
}

TEST(MutationTest, TheEmulatorShowsTheFault) {
  const std::vector<std::string> faults = FindFaults();
  if (std::string(QUIRE_MUTANT) == "none") {
    EXPECT_EQ(faults, std::vector<std::string>{});
    return;
  }
  ASSERT_FALSE(faults.empty()) << QUIRE_MUTANT << " went unnoticed";
  bool found = false;
  for (const std::string& fault : faults) {
    found = found || fault.find(QUIRE_MUTANT_SHOWS) != std::string::npos;
  }
  EXPECT_TRUE(found) << "expected \"" << QUIRE_MUTANT_SHOWS << "\", first: " << faults[0];
}

}  // namespace
}  // namespace testing
}  // namespace quire::kernels
