// The two servers of a socket workload, each in a process of its own.
#ifndef QUIRE_TESTS_BENCH_SOCKET_SERVERS_H_
#define QUIRE_TESTS_BENCH_SOCKET_SERVERS_H_

#include <cstdint>
#include <string>

#include "tests/bench/child_process.h"
#include "tests/support/temp_folder.h"

namespace quire::bench {

// Which program serves; quire-server of this build unless the flag says otherwise.
std::string ServerProgram();

class SocketServers {
 public:
  explicit SocketServers(uint32_t block_count, uint32_t max_sequence_tokens);

  const ChildProcess& quire() const { return quire_; }

  const ChildProcess& echo() const { return echo_; }

  std::string QuireAddress(bool tcp) const { return Address(quire_, "q", tcp); }

  std::string EchoAddress(bool tcp) const { return Address(echo_, "e", tcp); }

 private:
  std::string Address(const ChildProcess& process, const char* name, bool tcp) const {
    return tcp ? "127.0.0.1:" + std::to_string(process.tcp_port()) : "unix:" + folder_.File(name);
  }

  const TempFolder folder_;
  const ChildProcess quire_;
  const ChildProcess echo_;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_SOCKET_SERVERS_H_
