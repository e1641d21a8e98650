// The limits that the comments of the contract name are those of the engine.
#include <bit>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cache_service/engine/engine_options.h"
#include "tests/proto/contract.h"

namespace quire::testing {
namespace {

// 4096 is 4,096.
std::string Number(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

std::string Power(uint64_t number) {
  EXPECT_TRUE(std::has_single_bit(number));
  return absl::StrCat("2^", std::countr_zero(number));
}

template <typename Unit>
std::string Time(Duration duration, const char* unit) {
  EXPECT_EQ(duration % Unit(1), Duration::zero());
  return absl::StrCat(duration / Unit(1), unit);
}

class LimitsTest : public ContractTest {
 protected:
  // On one line.
  template <typename T>
  static std::string WordsOf(const T* descriptor) {
    EXPECT_NE(descriptor, nullptr);
    return descriptor == nullptr ? "" : absl::StrReplaceAll(CommentOf(*descriptor), {{"\n", ""}});
  }

  std::string Rpc(const std::string& name) const {
    return WordsOf(pool_.FindMethodByName("quire.v1." + name));
  }

  std::string Field(const std::string& name) const {
    return WordsOf(pool_.FindFieldByName("quire.v1." + name));
  }

  const EngineOptions options_ = EngineOptions();
};

TEST_F(LimitsTest, AreNamedWhereTheyHold) {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  const std::string step = Rpc("CacheService.Step");
  const std::string attach = Field("AttachWorkerRequest.lease_duration");
  const std::pair<std::string, std::string> limits[] = {
      {Rpc("CacheService.AttachWorker"), Number(options_.max_leases)},
      {attach, Time<seconds>(options_.default_lease, " s")},
      {attach, Time<minutes>(options_.max_lease, " min")},
      {step, absl::StrCat("max_steps_in_flight (", options_.max_steps_in_flight, " by default)")},
      {step, "max_operations_per_step (" + Number(options_.max_operations_per_step)},
      {step, "max_sequences_per_worker (" + Number(options_.max_sequences_per_worker)},
      {step, Power(options_.max_answer_entries) + " table entries"},
      {step, Power(options_.max_table_entries_per_worker) + " table entries"},
      {Field("BeginOperation.tokens"), Number(options_.max_sequence_tokens)},
      {Rpc("AdminService.PinPrefix"), "max_pins of the pool, " + Number(options_.max_pins)},
      {Rpc("AdminService.PinPrefix"), Time<hours>(options_.max_pin, " h")},
      {Field("PinPrefixRequest.duration"), Time<hours>(options_.max_pin, " h")}};
  for (const auto& [comment, limit] : limits) {
    EXPECT_NE(comment.find(limit), std::string::npos) << limit << " in: " << comment;
  }
}

}  // namespace
}  // namespace quire::testing
