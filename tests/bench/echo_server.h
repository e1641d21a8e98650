// The bare gRPC server that Quire's round trips are compared with.
#ifndef QUIRE_TESTS_BENCH_ECHO_SERVER_H_
#define QUIRE_TESTS_BENCH_ECHO_SERVER_H_

#include <string>

namespace quire::bench {

// Serves on a Unix socket and on a loopback port of the system's choice until SIGTERM, in the
// callback API as Quire's server does. Prints "ready: tcp_port=N" when it listens.
int RunEchoServer(const std::string& unix_socket);

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_ECHO_SERVER_H_
