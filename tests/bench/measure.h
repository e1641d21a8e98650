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

inline double Quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples.at(static_cast<size_t>(share * static_cast<double>(samples.size() - 1)));
}

inline double Median(std::vector<double> samples) { return Quantile(std::move(samples), 0.5); }

// Seconds that reading the clock twice takes: a system call, a third of a microsecond.
inline double ClockSeconds() {
  static const double cost = [] {
    std::vector<double> samples(1001);
    for (double& sample : samples) {
      const double start = ThreadSeconds();
      sample = ThreadSeconds() - start;
    }
    return Median(samples);
  }();
  return cost;
}

// Microseconds of thread CPU time that `work` takes, without those of the clock.
template <typename Work>
double Microseconds(Work work) {
  const double clock = ClockSeconds();
  const double start = ThreadSeconds();
  work();
  return 1e6 * std::max(0.0, ThreadSeconds() - start - clock);
}

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_MEASURE_H_
