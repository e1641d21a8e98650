// A worker that does what it is told: a line on the standard input is one command, a line on the
// standard output its answer, "ok ..." or the reason of the error.
//
//   puppet_worker SERVER NAME INCARNATION LEASE_MS
//
//   begin SEQUENCE FIRST COUNT    tokens FIRST, FIRST + 1, ...: ok reused R copies C blocks B...
//   prompts SEQUENCE FIRST COUNT NUMBER   NUMBER begins and commits, SEQUENCE and FIRST rising
//   commit SEQUENCE | extend SEQUENCE SLOTS | finish SEQUENCE
//   complete                      reports all that is applied
//   peek FIRST COUNT              ok TOKENS
//   lease                         ok, or why it ended
//   write BYTE BLOCK... | writeall BYTE   fills blocks, whether the lease is good or not
//   holds BYTE BLOCK...           ok if each block has this byte everywhere
//   fork                          ok PID of a child that only holds the mapping
//   hangcopy                      the next copy order never ends
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "worker/client/cache_client.h"

namespace quire {
namespace {

using client::CacheClient;
using client::SequenceHandle;
using client::Step;
using client::TokenId;

std::string Text(const absl::Status& status) {
  if (client::HasReason(status)) return std::string(ReasonName(ReasonOf(status)));
  return "error " + status.ToString();
}

std::vector<TokenId> Tokens(TokenId first, uint32_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class Puppet {
 public:
  explicit Puppet(std::unique_ptr<CacheClient> client) : client_(std::move(client)) {
    client_->set_copy_executor([this](std::span<const client::CopyOrder>) {
      while (hang_) pause();
      return absl::OkStatus();
    });
  }

  std::string Do(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    if (command == "begin") return Begin(in);
    if (command == "prompts") return Prompts(in);
    if (command == "commit" || command == "extend" || command == "finish") {
      return Change(command, in);
    }
    if (command == "complete") return Complete();
    if (command == "peek") return Peek(in);
    if (command == "lease") return Answer(client_->CheckLease());
    if (command == "write" || command == "writeall") return Write(command == "writeall", in);
    if (command == "holds") return Holds(in);
    if (command == "fork") return Fork();
    hang_ = command == "hangcopy";
    return hang_ ? "ok" : "unknown command";
  }

 private:
  static std::string Answer(const absl::Status& status) {
    return status.ok() ? "ok" : Text(status);
  }

  absl::StatusOr<client::StepAnswer> Send(Step step) {
    const auto sent = client_->Submit(std::move(step));
    if (!sent.ok()) return sent.status();
    auto applied = client_->Wait();
    if (!applied.ok()) return applied.status();
    if (!applied->answer.failures.empty()) return ToStatus(applied->answer.failures[0].error);
    return std::move(applied->answer);
  }

  std::string Begin(std::istream& in) {
    SequenceHandle sequence = 0;
    TokenId first = 0;
    uint32_t count = 0;
    in >> sequence >> first >> count;
    Step step;
    step.Begin({.sequence = sequence, .tokens = Tokens(first, count)});
    const auto answer = Send(std::move(step));
    if (!answer.ok()) return Text(answer.status());
    std::ostringstream text;
    text << "ok reused " << answer->begins[0].reused_tokens << " copies " << answer->copies.size()
         << " blocks";
    for (const auto block : client_->tables().Find(sequence)->tables[0]) text << " " << block;
    return text.str();
  }

  std::string Prompts(std::istream& in) {
    SequenceHandle sequence = 0;
    TokenId first = 0;
    uint32_t count = 0, number = 0;
    in >> sequence >> first >> count >> number;
    Step begins, commits;
    for (uint32_t i = 0; i < number; ++i) {
      begins.Begin({.sequence = sequence + i, .tokens = Tokens(first + i * 1000, count)});
      commits.Commit(sequence + i, count, count);
    }
    absl::Status status = Send(std::move(begins)).status();
    status.Update(Send(std::move(commits)).status());
    return Answer(status);
  }

  std::string Change(const std::string& command, std::istream& in) {
    SequenceHandle sequence = 0;
    uint32_t slots = 0;
    in >> sequence >> slots;
    const client::SequenceState* state = client_->tables().Find(sequence);
    if (state == nullptr) return "unknown sequence";
    Step step;
    if (command == "commit") step.Commit(sequence, state->length, state->length);
    if (command == "extend") step.Extend(sequence, state->length, slots);
    if (command == "finish") step.Finish(sequence);
    const absl::Status status = Send(std::move(step)).status();
    if (!status.ok() || command != "extend") return Answer(status);
    std::ostringstream text;
    text << "ok blocks";
    for (const auto block : client_->tables().Find(sequence)->tables[0]) text << " " << block;
    return text.str();
  }

  std::string Complete() {
    absl::StatusOr<client::StepAnswer> applied = Send(Step());
    if (!applied.ok()) return Text(applied.status());
    if (absl::Status status = client_->Complete(applied->step); !status.ok()) return Text(status);
    return Answer(Send(Step()).status());
  }

  std::string Peek(std::istream& in) {
    TokenId first = 0;
    uint32_t count = 0;
    in >> first >> count;
    const auto found = client_->PeekPrefix(Tokens(first, count), {});
    return found.ok() ? "ok " + std::to_string(*found) : Text(found.status());
  }

  std::byte* Block(uint32_t index) const {
    return client_->blocks() + index * client_->pool().block_bytes;
  }

  std::string Write(bool all, std::istream& in) {
    int byte = 0;
    in >> byte;
    std::vector<uint32_t> blocks;
    for (uint32_t block = 0; in >> block;) blocks.push_back(block);
    if (all) blocks = Tokens(0, client_->pool().block_count);
    for (const uint32_t block : blocks) {
      std::memset(Block(block), byte, client_->pool().block_bytes);
    }
    return "ok";
  }

  std::string Holds(std::istream& in) {
    int byte = 0;
    in >> byte;
    for (uint32_t block = 0; in >> block;) {
      const std::byte* begin = Block(block);
      const bool same = std::all_of(begin, begin + client_->pool().block_bytes,
                                    [byte](std::byte value) { return value == std::byte(byte); });
      if (!same) return "block " + std::to_string(block) + " was overwritten";
    }
    return "ok";
  }

  static std::string Fork() {
    const pid_t child = fork();
    if (child != 0) return "ok " + std::to_string(child);
    // Nobody must take its ends of the pipes for those of its parent.
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    for (;;) pause();
  }

  std::unique_ptr<CacheClient> client_;
  bool hang_ = false;
};

int Main(char** argv) {
  client::ClientOptions options;
  options.server = argv[1];
  options.worker = argv[2];
  options.incarnation = std::stoull(argv[3]);
  options.lease = std::chrono::milliseconds(std::stoi(argv[4]));
  options.model_fingerprint = "puppet";
  options.layout.emplace();
  options.layout->kv_heads = 1;
  options.layout->head_dim = 64;
  options.layout->layer_windows = {0};
  auto client = CacheClient::Attach(options);
  if (!client.ok()) {
    std::cout << Text(client.status()) << std::endl;
    return 1;
  }
  std::cout << "ok " << (*client)->pool().block_count
            << ((*client)->pool().resumed ? " resumed" : "") << std::endl;
  Puppet puppet(*std::move(client));
  for (std::string line; std::getline(std::cin, line);) std::cout << puppet.Do(line) << std::endl;
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return argc == 5 ? quire::Main(argv) : 2; }
