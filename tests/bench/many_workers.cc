// Eight workers at once: their total rate beside that of one worker, all with steps in flight; and
// the slowest round trips of each in lock step, beside those of eight echoes.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/decode_batch.h"
#include "tests/bench/measure.h"
#include "tests/bench/socket_servers.h"
#include "tests/bench/socket_workloads.h"
#include "tests/bench/wire.h"

namespace quire::bench {
namespace {

constexpr uint32_t kSequences = 64;
constexpr uint64_t kWorkers = 8;
constexpr uint64_t kStepsInFlight = 8;

class DecodingWorker {
 public:
  DecodingWorker(const SocketServers& servers, uint32_t number)
      : number_(number),
        worker_(servers.QuireAddress(false), "w" + std::to_string(number), Form::kStream),
        batch_(kSequences, number) {
    Begin();
  }

  // Starts again with short sequences.
  void Restart() {
    batch_.FillFinishes(worker_.Prepare());
    worker_.Call();
    // New content, for otherwise the blocks would be merged with those of the last life.
    number_ += kWorkers + 1;
    batch_ = DecodeBatch(kSequences, number_);
    Begin();
  }

  double TimedStep() {
    batch_.FillAdvance(worker_.Prepare());
    const double start = WallSeconds();
    worker_.Call();
    return 1e6 * (WallSeconds() - start);
  }

  // As fast as the server answers, with several steps on the way.
  void Pipeline(uint64_t steps) {
    for (uint64_t step = 0; step < steps + kStepsInFlight; ++step) {
      if (step >= kStepsInFlight) worker_.Receive();
      if (step >= steps) continue;
      batch_.FillAdvance(worker_.Prepare());
      worker_.Send();
    }
  }

  const WireWorker& wire() const { return worker_; }

 private:
  void Begin() {
    batch_.FillBegins(worker_.Prepare(), 0, kSequences);
    worker_.Call();
  }

  uint32_t number_;
  WireWorker worker_;
  DecodeBatch batch_;
};

// Runs `work` on a thread per worker; returns the seconds that all took.
template <typename Work>
double RunAtOnce(Work work) {
  const double start = WallSeconds();
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kWorkers; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
  return WallSeconds() - start;
}

double WorstP99(const std::vector<std::vector<double>>& times) {
  double worst = 0;
  for (const auto& samples : times) worst = std::max(worst, Quantile(samples, 0.99));
  return worst;
}

double TimedEcho(EchoCaller& echo, size_t request_bytes, size_t answer_bytes) {
  echo.Prepare(request_bytes, answer_bytes);
  const double start = WallSeconds();
  echo.Call();
  return 1e6 * (WallSeconds() - start);
}

}  // namespace

void BenchWorkers(Report& report, bool small) {
  const SocketServers servers(small ? 8192 : 196608, 131072);
  std::vector<std::unique_ptr<DecodingWorker>> workers;
  std::vector<std::unique_ptr<EchoCaller>> echoes;
  for (uint32_t i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<DecodingWorker>(servers, i));
    echoes.push_back(std::make_unique<EchoCaller>(servers.EchoAddress(false), Form::kStream));
  }
  DecodingWorker alone(servers, kWorkers);
  alone.TimedStep();
  const size_t request_bytes = alone.wire().sent_bytes();
  const size_t answer_bytes = alone.wire().received_bytes();
  const uint64_t calls = small ? 20 : 300;
  std::vector<std::vector<double>> quire(kWorkers);
  std::vector<std::vector<double>> echo(kWorkers);
  std::vector<double> shares;
  std::vector<double> rates;
  for (int round = 0; round < (small ? 1 : 9); ++round) {
    RunAtOnce([&](uint64_t i) {
      for (uint64_t n = 0; n < calls; ++n) quire[i].push_back(workers[i]->TimedStep());
    });
    RunAtOnce([&](uint64_t i) {
      for (uint64_t n = 0; n < calls; ++n) {
        echo[i].push_back(TimedEcho(*echoes[i], request_bytes, answer_bytes));
      }
    });
    const double together = RunAtOnce([&](uint64_t i) { workers[i]->Pipeline(calls); });
    const double start = WallSeconds();
    alone.Pipeline(kWorkers * calls);
    shares.push_back((WallSeconds() - start) / together);
    rates.push_back(static_cast<double>(kWorkers * calls) / together);
    alone.Restart();
    for (const auto& worker : workers) worker->Restart();
  }
  using Goal = std::optional<double>;
  report.Add({"socket/8_workers/steps", Median(rates), "1/s", {}});
  report.Add({"socket/8_workers/to_one_saturating", Median(shares), "x", small ? Goal() : Goal(0.8),
              true});
  report.Add({"socket/8_workers/p99", WorstP99(quire), "us", {}});
  report.Add({"socket/8_workers/p99/echo", WorstP99(echo), "us", {}});
  report.Add({"socket/8_workers/p99/to_echo", WorstP99(quire) / WorstP99(echo), "x",
              small ? Goal() : Goal(3)});
}

}  // namespace quire::bench
