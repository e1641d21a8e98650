#include "worker/runtime/workload.h"

#include <algorithm>
#include <random>
#include <utility>

namespace quire::runtime {
namespace {

class TokenSource {
 public:
  TokenSource(uint64_t seed, uint32_t vocabulary) : random_(seed), token_(0, vocabulary - 1) {}

  std::vector<TokenId> Text(uint32_t count) {
    std::vector<TokenId> tokens(count);
    std::generate(tokens.begin(), tokens.end(), [this] { return token_(random_); });
    return tokens;
  }

  uint32_t Number(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random_);
  }

 private:
  std::mt19937_64 random_;
  std::uniform_int_distribution<TokenId> token_;
};

std::vector<std::vector<TokenId>> Prompts(TokenSource& own, const WorkloadOptions& options) {
  TokenSource common(options.prompts_seed, options.vocabulary);
  TokenSource& source = options.prompts_seed == 0 ? own : common;
  std::vector<std::vector<TokenId>> prompts(options.prompts);
  for (auto& prompt : prompts) prompt = source.Text(options.prompt_tokens);
  return prompts;
}

class Chat final : public Workload {
 public:
  explicit Chat(const WorkloadOptions& options)
      : options_(options),
        source_(options.seed, options.vocabulary),
        system_prompts_(Prompts(source_, options)),
        users_(options.users) {}

  std::optional<Request> Next() override {
    for (size_t i = 0; i < users_.size(); ++i) {
      User& user = users_[next_user_++ % users_.size()];
      if (user.waiting_for == 0 && Now() >= user.asks_at) return Ask(user);
    }
    return std::nullopt;
  }

  void OnResult(const RequestResult& result) override {
    for (User& user : users_) {
      if (user.waiting_for != result.request.id) continue;
      user.waiting_for = 0;
      user.asks_at = AddSaturating(Now(), options_.think);
      if (!result.status.ok() || ++user.turn >= options_.turns) {
        user = User{.asks_at = user.asks_at};
        continue;
      }
      const std::vector<TokenId>& said = result.outputs.at(0).tokens;
      user.conversation.insert(user.conversation.end(), said.begin(), said.end());
    }
  }

 private:
  struct User {
    std::vector<TokenId> conversation{};
    uint32_t turn = 0;
    // Request id, 0: may ask.
    uint64_t waiting_for = 0;
    TimePoint asks_at{};
  };

  TimePoint Now() const { return options_.clock == nullptr ? TimePoint() : options_.clock->Now(); }

  Request Ask(User& user) {
    const auto fits = [&] {
      return user.conversation.size() + 24 + options_.new_tokens <= options_.max_sequence_tokens;
    };
    if (user.conversation.empty() || !fits()) {
      user.turn = 0;
      user.conversation = system_prompts_[source_.Number(0, options_.prompts - 1)];
    }
    const std::vector<TokenId> question = source_.Text(source_.Number(8, 24));
    user.conversation.insert(user.conversation.end(), question.begin(), question.end());
    Request request;
    request.id = user.waiting_for = ++last_id_;
    request.prompt = user.conversation;
    request.new_tokens = source_.Number(options_.new_tokens / 2 + 1, options_.new_tokens);
    request.sampling = {options_.temperature, options_.seed + request.id};
    return request;
  }

  const WorkloadOptions options_;
  TokenSource source_;
  const std::vector<std::vector<TokenId>> system_prompts_;
  std::vector<User> users_;
  size_t next_user_ = 0;
  uint64_t last_id_ = 0;
};

// Independent prompts, each searched several ways, `users` at a time.
class Searches final : public Workload {
 public:
  Searches(const WorkloadOptions& options, Search search)
      : options_(options),
        search_(search),
        source_(options.seed, options.vocabulary),
        prompts_(Prompts(source_, options)) {}

  std::optional<Request> Next() override {
    if (in_flight_ >= options_.users) return std::nullopt;
    ++in_flight_;
    Request request;
    request.id = ++last_id_;
    request.prompt = prompts_[source_.Number(0, options_.prompts - 1)];
    const std::vector<TokenId> own = source_.Text(source_.Number(1, 24));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.new_tokens = options_.new_tokens;
    request.search = search_;
    request.width = options_.width;
    request.sampling = {options_.temperature, options_.seed + request.id};
    return request;
  }

  void OnResult(const RequestResult&) override { --in_flight_; }

 private:
  const WorkloadOptions options_;
  const Search search_;
  TokenSource source_;
  const std::vector<std::vector<TokenId>> prompts_;
  uint32_t in_flight_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Workload> MakeChat(const WorkloadOptions& options) {
  return std::make_unique<Chat>(options);
}

std::unique_ptr<Workload> MakeSamples(const WorkloadOptions& options) {
  return std::make_unique<Searches>(options, Search::kSamples);
}

std::unique_ptr<Workload> MakeBeam(const WorkloadOptions& options) {
  return std::make_unique<Searches>(options, Search::kBeam);
}

}  // namespace quire::runtime
