// quire-server: reads options, builds the server, waits for its end.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <new>
#include <optional>
#include <string>

#include "cache_service/base/error.h"
#include "cache_service/base/memory_reserve.h"
#include "cache_service/base/process_files.h"
#include "cache_service/flags.h"
#include "cache_service/health_check.h"
#include "cache_service/server_config.h"
#include "cache_service/signals.h"

namespace quire {
namespace {

constexpr int kEndedInOrder = 0;
constexpr int kCouldNotStart = 1;
constexpr int kBadOption = 2;
constexpr int kDoesNotServe = 1;

int Fail(const absl::Status& status, int exit_code) {
  std::cerr << "quire-server: " << Explain(status) << std::endl;
  return exit_code;
}

void PrintConfig(const v1::ServerConfig& config, uint64_t epoch) {
  std::cout << "quire-server " << QUIRE_VERSION << ", epoch " << epoch
            << ", effective configuration:\n"
            << config.DebugString() << std::flush;
}

// Scripts wait for this line.
void PrintReady(const Server& server, const ServerOptions& options) {
  std::cout << "quire-server ready:";
  if (!options.unix_socket.empty()) std::cout << " unix=" << options.unix_socket;
  if (!options.tcp_address.empty()) std::cout << " tcp_port=" << server.tcp_port();
  if (!options.metrics_address.empty()) std::cout << " metrics_port=" << server.metrics_port();
  std::cout << std::endl;
}

void WarnAboutOpenPort(const ServerOptions& options) {
  const std::string& address = options.tcp_address;
  const bool loopback = address.starts_with("127.") || address.starts_with("localhost:") ||
                        address.starts_with("[::1]:");
  if (address.empty() || loopback) return;
  if (options.token_file.empty()) {
    std::cerr << "quire-server: warning: " << address << " is open to everyone (no token_file)\n";
  }
  if (options.tls_certificate.empty()) {
    std::cerr << "quire-server: warning: " << address << " is not encrypted (no tls_certificate)\n";
  }
}

int Probe(const ServerOptions& options) {
  if (options.unix_socket.empty()) {
    return Fail(ToStatus(InvalidArgument("unix_socket", "none; --check_health needs one")),
                kBadOption);
  }
  const absl::Status health = CheckHealth(options.unix_socket, std::chrono::seconds(2));
  return health.ok() ? kEndedInOrder : Fail(health, kDoesNotServe);
}

// A prompt of 32k tokens is a message of 128 KiB, where malloc begins to map and unmap each piece:
// the pages of every message would be cleared anew. What is freed stays for the next message.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

int EndedInOrder() {
  std::cout << "quire-server: ended" << std::endl;
  return kEndedInOrder;
}

// What the largest message of tokens may take in a step that has begun, a few times over.
constexpr size_t kMemoryReserve = size_t{64} << 20;

int Serve(const ServerOptions& options) {
  KeepFreedMemory();
  if (!KeepMemoryReserve(kMemoryReserve)) throw std::bad_alloc();
  const SystemClock clock;
  auto server = Server::Start(options, clock, TerminationIsPending);
  if (absl::IsCancelled(server.status())) return EndedInOrder();
  if (!server.ok()) return Fail(server.status(), kCouldNotStart);
  PrintReady(**server, options);
  {
    const SignalThread signals([&server](int count) {
      std::cout << "quire-server: draining" << std::endl;
      // The first signal lets sequences finish, the second one does not.
      const auto deadline = count == 1 ? std::optional<Duration>() : Duration::zero();
      (*server)->StartDraining(deadline);
    });
    (*server)->WaitUntilDrained();
  }
  (*server)->Stop();
  return EndedInOrder();
}

// A running server may have taken what a new configuration needs; then it must end first.
void WarnAboutSpace(const ServerOptions& options) {
  const absl::Status status = CheckSpace(MemoriesOf(options.pools), Space::kFree);
  if (!status.ok()) std::cerr << "quire-server: warning: " << Explain(status) << std::endl;
}

int Main(int argc, char** argv) {
  OpenStandardFiles();
  RaiseFileLimit();
  const auto line = ParseCommandLine(argc, argv);
  if (!line.ok()) return Fail(line.status(), kBadOption);
  const uint64_t epoch = NewEpoch();
  auto options = ToServerOptions(line->config, epoch);
  if (!options.ok()) return Fail(options.status(), kBadOption);
  if (line->check_health) return Probe(*options);
  BlockSignals();
  for (const auto check : {CheckFiles, CheckPlaces}) {
    if (absl::Status status = check(*options); !status.ok()) return Fail(status, kBadOption);
  }
  options->version = QUIRE_VERSION;
  PrintConfig(line->config, epoch);
  if (line->check_config) {
    WarnAboutSpace(*options);
    return kEndedInOrder;
  }
  WarnAboutOpenPort(*options);
  return Serve(*options);
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  try {
    return quire::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "quire-server: the memory of this process is too small for its pools\n";
    return quire::kCouldNotStart;
  }
}
