#include "tests/bench/socket_servers.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, server, QUIRE_BENCH_SERVER, "The quire-server to measure");

namespace quire::bench {
namespace {

// Of the layout that the workers here attach with.
constexpr uint64_t kBlockBytes = 4096;

}  // namespace

std::string ServerProgram() { return absl::GetFlag(FLAGS_server); }

SocketServers::SocketServers(uint32_t block_count, uint32_t max_sequence_tokens)
    : quire_({ServerProgram(),
              "--device_memory_bytes=" + std::to_string(uint64_t{block_count} * kBlockBytes),
              "--max_sequence_tokens=" + std::to_string(max_sequence_tokens),
              "--unix_socket=" + folder_.File("q"), "--tcp_address=127.0.0.1:0",
              "--metrics_address=none"}),
      echo_({"/proc/self/exe", "--echo_server=" + folder_.File("e")}) {}

}  // namespace quire::bench
