#include "cache_service/rpc/pool.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "cache_service/memory/shm_pool_memory.h"
#include "cache_service/rpc/pool_registry.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace quire {
namespace {

using testing::HasReason;
using testing::IsInvalid;
using testing::IsOk;

// Content of 4096 bytes: 4 tokens x 2 heads x (K, V) x 64 x 4 bytes.
ModelShape Shape() {
  ModelShape shape;
  shape.dtype = kernels::DType::kF32;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.layer_windows = {0};
  shape.block_tokens = 4;
  return shape;
}

AttachParams Worker(const char* name = "w", bool map_memory = true) {
  AttachParams params;
  params.worker = name;
  params.incarnation = 1;
  params.model_fingerprint = "m";
  params.map_memory = map_memory;
  return params;
}

class PoolTest : public ::testing::Test {
 protected:
  PoolTest() {
    options_.engine.pool_name = "p";
    options_.engine.epoch = 7;
    options_.engine.block_tokens = 4;
    options_.engine.max_sequence_tokens = 0;
    options_.device_memory_bytes = 10 * 4096 + 100;
  }

  absl::StatusOr<std::unique_ptr<Pool>> Create() {
    std::unique_ptr<PoolMemory> memory;
    if (options_.engine.memory == PoolMemoryKind::kShared) {
      auto created = ShmPoolMemory::Create({.pool_name = "p",
                                            .directory = folder_.path(),
                                            .epoch = 7,
                                            .ranks = options_.ranks,
                                            .bytes = options_.device_memory_bytes});
      EXPECT_THAT(created, IsOk());
      memory = *std::move(created);
    }
    return Pool::Create(options_, std::move(memory), clock_);
  }

  TempFolder folder_;
  FakeClock clock_;
  PoolOptions options_;
};

TEST_F(PoolTest, FirstAttachFixesTheLayoutOfAPoolGivenByBytes) {
  const auto pool = Create();
  ASSERT_THAT(pool, IsOk());
  EXPECT_EQ((*pool)->engine(), nullptr);
  EXPECT_EQ((*pool)->Stats().pool_name, "p");
  const auto attachment = (*pool)->Attach(Worker(), Shape());
  ASSERT_THAT(attachment, IsOk());
  ASSERT_NE((*pool)->engine(), nullptr);
  EXPECT_EQ((*pool)->engine()->options().block_count, 10u);
  EXPECT_EQ((*pool)->engine()->options().block_bytes, 4096u);
  EXPECT_EQ((*pool)->engine()->options().max_sequence_tokens, 40u);
  ASSERT_EQ(attachment->grants.size(), 1u);
}

TEST_F(PoolTest, AnotherLayoutIsRefusedNamingBoth) {
  const auto pool = Create();
  ASSERT_THAT((*pool)->Attach(Worker(), Shape()), IsOk());
  ModelShape other = Shape();
  other.dtype = kernels::DType::kF16;
  const auto refused = (*pool)->Attach(Worker("v"), other);
  ASSERT_THAT(refused, HasReason(Reason::kLayoutMismatch));
  const Error error = FromStatus(refused.status());
  EXPECT_NE(error.Detail("pool_layout"), "");
  EXPECT_NE(error.Detail("worker_layout"), "");
  EXPECT_NE(error.Detail("pool_layout"), error.Detail("worker_layout"));
  EXPECT_THAT((*pool)->Attach(Worker("v"), Shape()), IsOk());
}

TEST_F(PoolTest, RefusedFirstAttachFixesNothing) {
  const auto pool = Create();
  ModelShape shape = Shape();
  shape.head_dim = 65;
  EXPECT_THAT((*pool)->Attach(Worker(), shape), IsInvalid("layout.head_dim"));
  shape = Shape();
  shape.kv_heads = 1000;
  EXPECT_THAT((*pool)->Attach(Worker(), shape), IsInvalid("device_memory_bytes"));
  EXPECT_EQ((*pool)->engine(), nullptr);
  EXPECT_THAT((*pool)->Attach(Worker(), Shape()), IsOk());
}

// The header page of the pool's file, as others see it.
std::string HeaderPage(const std::string& path) {
  std::string page(4096, '\0');
  std::ifstream(path, std::ios::binary).read(page.data(), 4096);
  return page;
}

TEST_F(PoolTest, AFirstAttachThatTheEngineRefusesLeavesNoTrace) {
  const auto pool = Create();
  const std::string path = folder_.File(folder_.Names().at(0));
  const std::string before = HeaderPage(path);
  AttachParams nameless = Worker("");
  EXPECT_THAT((*pool)->Attach(nameless, Shape()), IsInvalid("worker"));
  AttachParams impatient = Worker();
  impatient.lease_duration = Duration::zero();
  EXPECT_THAT((*pool)->Attach(impatient, Shape()), IsInvalid("lease_duration"));
  EXPECT_EQ((*pool)->engine(), nullptr);
  EXPECT_EQ(HeaderPage(path), before);
  // Another layout is free to come first.
  ModelShape other = Shape();
  other.dtype = kernels::DType::kF16;
  other.kv_heads = 4;
  const auto attachment = (*pool)->Attach(Worker(), other);
  ASSERT_THAT(attachment, IsOk());
  EXPECT_EQ(attachment->grants[0].lease_word, 1u);
  EXPECT_NE(HeaderPage(path), before);
}

TEST_F(PoolTest, DamagedMemoryRefusesAttachesAndSaysWhy) {
  const auto pool = Create();
  const std::string path = folder_.File(folder_.Names().at(0));
  EXPECT_THAT((*pool)->CheckMemory(), IsOk());
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT((*pool)->CheckMemory(), HasReason(Reason::kInvariantBroken));
  EXPECT_THAT((*pool)->Attach(Worker(), Shape()), HasReason(Reason::kInvariantBroken));
  EXPECT_EQ((*pool)->engine(), nullptr);
}

TEST_F(PoolTest, LayoutIsRequiredToMapButNotToLook) {
  const auto pool = Create();
  EXPECT_THAT((*pool)->Attach(Worker(), std::nullopt), IsInvalid("layout"));
  EXPECT_THAT((*pool)->Attach(Worker("tool", false), std::nullopt), IsInvalid("layout"));
  ASSERT_THAT((*pool)->Attach(Worker(), Shape()), IsOk());
  const auto tool = (*pool)->Attach(Worker("tool", false), std::nullopt);
  ASSERT_THAT(tool, IsOk());
  EXPECT_TRUE(tool->grants.empty());
}

TEST_F(PoolTest, RanksMustBeThePools) {
  options_.ranks = 2;
  const auto pool = Create();
  EXPECT_THAT((*pool)->Attach(Worker(), Shape()), HasReason(Reason::kLayoutMismatch));
  AttachParams params = Worker();
  params.ranks = 2;
  const auto attachment = (*pool)->Attach(params, Shape());
  ASSERT_THAT(attachment, IsOk());
  EXPECT_EQ(attachment->grants.size(), 2u);
}

TEST_F(PoolTest, BlockTokensMustBeThePoolsFromTheFirstAttachOn) {
  const auto pool = Create();
  ModelShape shape = Shape();
  shape.block_tokens = 8;
  EXPECT_THAT((*pool)->Attach(Worker(), shape), HasReason(Reason::kLayoutMismatch));
  EXPECT_EQ((*pool)->engine(), nullptr);
}

TEST_F(PoolTest, PoolTooSmallForOneSequenceIsRefusedAtStart) {
  options_.shape = Shape();
  options_.engine.max_sequence_tokens = 41;
  const auto pool = Create();
  EXPECT_THAT(pool, HasReason(Reason::kInvalidArgument));
  options_.engine.max_sequence_tokens = 40;
  EXPECT_THAT(Create(), IsOk());
}

TEST_F(PoolTest, WorkerMemoryNeedsNoLayout) {
  options_.engine.memory = PoolMemoryKind::kWorker;
  options_.engine.block_count = 5;
  options_.device_memory_bytes = 0;
  const auto pool = Create();
  ASSERT_THAT(pool, IsOk());
  const auto attachment = (*pool)->Attach(Worker(), std::nullopt);
  ASSERT_THAT(attachment, IsOk());
  EXPECT_TRUE(attachment->grants.empty());
  EXPECT_EQ((*pool)->engine()->options().block_count, 5u);
}

TEST_F(PoolTest, DrainRefusesAttachEvenBeforeTheLayoutIsKnown) {
  const auto pool = Create();
  EXPECT_EQ((*pool)->StartDraining(), 0u);
  EXPECT_THAT((*pool)->Attach(Worker(), Shape()), HasReason(Reason::kDraining));
  EXPECT_EQ((*pool)->engine(), nullptr);
}

TEST_F(PoolTest, EndedLeaseIsRevokedInItsFile) {
  const auto pool = Create();
  const auto first = (*pool)->Attach(Worker(), Shape());
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT((*pool)->engine()->Detach(first->lease.lease, 7, 0), IsOk());
  const auto second = (*pool)->Attach(Worker("v"), Shape());
  ASSERT_THAT(second, IsOk());
  // The word is used again because the first lease let go of it.
  EXPECT_EQ(second->grants[0].lease_word_offset, first->grants[0].lease_word_offset);
  EXPECT_NE(second->grants[0].lease_word, first->grants[0].lease_word);
}

class PoolRegistryTest : public PoolTest {
 protected:
  std::unique_ptr<Pool> Named(const char* name) {
    options_.engine.pool_name = name;
    options_.engine.memory = PoolMemoryKind::kWorker;
    options_.engine.block_count = 5;
    options_.device_memory_bytes = 0;
    auto pool = Create();
    EXPECT_THAT(pool, IsOk());
    return *std::move(pool);
  }
};

TEST_F(PoolRegistryTest, EmptyNameMeansTheOnlyPool) {
  std::vector<std::unique_ptr<Pool>> one;
  one.push_back(Named("a"));
  const PoolRegistry registry(std::move(one));
  ASSERT_THAT(registry.Find(""), IsOk());
  EXPECT_EQ((*registry.Find(""))->name(), "a");
  EXPECT_THAT(registry.Find("b"), HasReason(Reason::kPoolNotFound));
}

TEST_F(PoolRegistryTest, LeasesFindTheirPool) {
  std::vector<std::unique_ptr<Pool>> two;
  two.push_back(Named("a"));
  two.push_back(Named("b"));
  const PoolRegistry registry(std::move(two));
  EXPECT_THAT(registry.Find(""), IsInvalid("pool"));
  Pool& b = **registry.Find("b");
  const auto attachment = b.Attach(Worker(), std::nullopt);
  ASSERT_THAT(attachment, IsOk());
  const auto found = registry.FindByLease(registry.WireLease(b, attachment->lease.lease), 7);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->pool, &b);
  EXPECT_EQ(found->lease, attachment->lease.lease);
}

TEST_F(PoolRegistryTest, AnyOtherTextIsAnExpiredLease) {
  std::vector<std::unique_ptr<Pool>> one;
  one.push_back(Named("a"));
  const PoolRegistry registry(std::move(one));
  for (const char* text : {"", "-", "0", "0-", "1-abc", "-1-abc", "99999999999999999999-a", "x"}) {
    EXPECT_THAT(registry.FindByLease(text, 7), HasReason(Reason::kLeaseExpired)) << text;
  }
}

// A worker that outlived the server finds out before anybody has attached again.
TEST_F(PoolRegistryTest, LeasesOfAnotherEpochAreToldApartFromExpiredOnes) {
  options_.engine.pool_name = "a";
  std::vector<std::unique_ptr<Pool>> one;
  one.push_back(*Create());
  const PoolRegistry registry(std::move(one));
  ASSERT_EQ(registry.pools()[0]->engine(), nullptr);
  const auto refused = registry.FindByLease("0-abc", 6);
  ASSERT_THAT(refused, HasReason(Reason::kEpochMismatch));
  EXPECT_EQ(FromStatus(refused.status()).Detail("epoch"), "7");
  EXPECT_THAT(registry.FindByLease("5-abc", 6), HasReason(Reason::kEpochMismatch));
  EXPECT_THAT(registry.FindByLease("0-abc", 7), HasReason(Reason::kLeaseExpired));
}

}  // namespace
}  // namespace quire
