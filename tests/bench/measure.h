// Timing by the CPU time of the calling thread, so that other load on the machine counts little.
#ifndef QUIRE_TESTS_BENCH_MEASURE_H_
#define QUIRE_TESTS_BENCH_MEASURE_H_

#include <algorithm>
#include <ctime>
#include <vector>

namespace quire::bench {

inline double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline double WallSeconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Microseconds of thread CPU time that `work` takes.
template <typename Work>
double Microseconds(Work work) {
  const double start = ThreadSeconds();
  work();
  return 1e6 * (ThreadSeconds() - start);
}

inline double Quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples.at(static_cast<size_t>(share * static_cast<double>(samples.size() - 1)));
}

inline double Median(std::vector<double> samples) { return Quantile(std::move(samples), 0.5); }

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_MEASURE_H_
