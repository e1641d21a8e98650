#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "kernels/backend.h"

namespace quire::kernels {
namespace {

TEST(ThreadPoolTest, EveryTaskRunsOnceOnAWorkerThatExists) {
  cpu::ThreadPool pool(3);
  for (const int64_t tasks : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    std::atomic<bool> known{true};
    pool.Run(tasks, [&](int64_t task, int worker) {
      ++runs[static_cast<size_t>(task)];
      if (worker < 0 || worker >= 3) known = false;
    });
    for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    EXPECT_TRUE(known);
  }
}

// Room for a few stacks more than there is now, far fewer than 256.
void LimitAddressSpace() {
  int64_t pages = 0;
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%ld", &pages) != 1) std::exit(3);
  std::fclose(statm);
  const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{96} << 20);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
}

[[noreturn]] void MakeTooManyThreads() {
  LimitAddressSpace();
  const Result<std::unique_ptr<Backend>> backend = CreateBackend("cpu", {.threads = 256});
  std::exit(!backend.ok() && backend.status().code() == StatusCode::kInternal ? 0 : 1);
}

TEST(ThreadPoolTest, ThreadsThatCannotBeHadAreAStatus) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than the limit leaves";
#endif
  EXPECT_EXIT(MakeTooManyThreads(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace quire::kernels
