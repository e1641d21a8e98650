#include "tests/chaos/script.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <thread>
#include <utility>

namespace quire::chaos {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Script::Script(const ScriptOptions& options, Fleet& fleet)
    : options_(options),
      fleet_(fleet),
      calls_(fleet.server().address()),
      random_(options.seed),
      faults_(Faults()) {}

std::vector<Script::Fault> Script::Faults() const {
  std::vector<Fault> faults = {{"audit", 2, &Script::Audit}, {"flush", 1, &Script::Flush}};
  if (options_.worker_faults) {
    faults.push_back({"kill worker", 4, &Script::KillWorker});
    faults.push_back({"stop worker", 4, &Script::StopWorker});
    faults.push_back({"end worker", 2, &Script::EndWorker});
  }
  if (options_.server_faults) {
    faults.push_back({"kill server", 2, &Script::KillServer});
    faults.push_back({"terminate server", 2, &Script::TerminateServer});
    faults.push_back({"stop server", 1, &Script::StopServer});
  }
  return faults;
}

uint64_t Script::Number(uint64_t low, uint64_t high) {
  return std::uniform_int_distribution<uint64_t>(low, high)(random_);
}

void Script::Later(uint64_t low_ms, uint64_t high_ms, std::function<void()> act) {
  later_.emplace(steady_clock::now() + milliseconds(Number(low_ms, high_ms)), std::move(act));
}

void Script::DoDue() {
  while (!later_.empty() && later_.begin()->first <= steady_clock::now()) {
    const std::function<void()> act = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    act();
  }
}

void Script::Run() {
  const Time end = steady_clock::now() + options_.duration;
  Time next = steady_clock::now() + milliseconds(1000);
  while (steady_clock::now() < end && !::testing::Test::HasFailure()) {
    DoDue();
    fleet_.ExpectAllAlive();
    if (steady_clock::now() >= next) {
      DrawFault();
      next = steady_clock::now() + milliseconds(Number(50, 900));
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

void Script::Restore() {
  while (!later_.empty()) {
    DoDue();
    std::this_thread::sleep_for(milliseconds(20));
  }
}

void Script::DrawFault() {
  int total = 0;
  for (const Fault& fault : faults_) total += fault.weight;
  int drawn = static_cast<int>(Number(1, static_cast<uint64_t>(total)));
  for (const Fault& fault : faults_) {
    if ((drawn -= fault.weight) > 0) continue;
    if ((this->*fault.act)()) ++done_[fault.name];
    return;
  }
}

int Script::RunningWorker() {
  const auto index = static_cast<size_t>(Number(0, fleet_.workers().size() - 1));
  const WorkerState& worker = fleet_.workers()[index];
  return worker.program.has_value() && !worker.stopped ? static_cast<int>(index) : -1;
}

bool Script::KillWorker() {
  // Also one that is stopped: its quarantine must end with it.
  const auto index = static_cast<size_t>(Number(0, fleet_.workers().size() - 1));
  if (!fleet_.workers()[index].program.has_value()) return false;
  fleet_.KillWorker(index);
  Later(0, 1500, [this, index] { fleet_.StartWorker(index); });
  return true;
}

bool Script::StopWorker() {
  const int index = RunningWorker();
  if (index < 0) return false;
  const auto worker = static_cast<size_t>(index);
  fleet_.StopWorker(worker);
  // Beyond the lease of 2 s, or not. Another life may be there by then.
  Later(50, 5000, [this, worker, life = fleet_.workers()[worker].lives] {
    const WorkerState& now = fleet_.workers()[worker];
    if (now.program.has_value() && now.lives == life) fleet_.ContinueWorker(worker);
  });
  return true;
}

bool Script::EndWorker() {
  const int index = RunningWorker();
  // A worker ends when its requests do, and those need a server.
  if (index < 0 || !server_usable_) return false;
  fleet_.EndWorker(static_cast<size_t>(index));
  Later(0, 500, [this, index] { fleet_.StartWorker(static_cast<size_t>(index)); });
  return true;
}

bool Script::KillServer() {
  if (!server_usable_) return false;
  server_usable_ = false;
  fleet_.server().Kill();
  Later(0, 1000, [this] {
    fleet_.server().Start();
    server_usable_ = true;
  });
  return true;
}

bool Script::TerminateServer() {
  if (!server_usable_) return false;
  server_usable_ = false;
  const ProgramResult ended = fleet_.server().Terminate();
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  Later(0, 1000, [this] {
    fleet_.server().Start();
    server_usable_ = true;
  });
  return true;
}

bool Script::StopServer() {
  if (!server_usable_) return false;
  server_usable_ = false;
  SignalProcess(fleet_.server().pid(), SIGSTOP);
  Later(50, 3000, [this] {
    SignalProcess(fleet_.server().pid(), SIGCONT);
    server_usable_ = true;
  });
  return true;
}

bool Script::Audit() {
  if (!server_usable_) return false;
  const auto findings = calls_.Audit();
  EXPECT_TRUE(findings.ok()) << findings.status();
  EXPECT_EQ(findings.value_or(""), "");
  return true;
}

bool Script::Flush() {
  if (!server_usable_) return false;
  const absl::Status status = calls_.Flush();
  EXPECT_TRUE(status.ok()) << status;
  return true;
}

}  // namespace quire::chaos
