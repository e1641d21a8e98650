// Checks results against the same model without any sharing: each output is computed again from its
// tokens, alone, in a plain contiguous cache.
#ifndef QUIRE_WORKER_RUNTIME_VERIFIER_H_
#define QUIRE_WORKER_RUNTIME_VERIFIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/model/contiguous_kv.h"
#include "worker/model/transformer.h"
#include "worker/runtime/request.h"

namespace quire::runtime {

struct VerifyReport {
  uint64_t tokens = 0;
  // Tokens that the reference would not have chosen.
  uint64_t different_tokens = 0;
  // Tokens that differ where the reference itself separates the two by less than its rounding: both
  // are right. They are counted apart and never hide a wrong logit, which is judged on its own.
  uint64_t near_ties = 0;
  uint64_t different_logits = 0;
  double largest_logit_difference = 0;
  // Of the first error.
  std::string first_difference{};

  // Adds what another verifier found.
  void Merge(const VerifyReport& other);

  bool identical() const { return tokens > 0 && different_tokens == 0 && different_logits == 0; }

  // "verification: identical (...)" or "verification: DIFFERENT (...)".
  std::string Summary() const;
};

// Needs results with recorded logits. Every token is compared exactly, and every logit within
// `tolerance`, which bounds the rounding of a sum in another order: paged and contiguous attention
// add the same terms in different orders. Because earlier tokens are equal or reported, computing
// an output in one pass over its own tokens is the same as generating it again. Not thread-safe.
class Verifier {
 public:
  Verifier(model::Transformer& model, float tolerance) : model_(model), tolerance_(tolerance) {}

  // For results that were read from a log: only the tokens are compared. Beam searches cannot be.
  void AllowMissingLogits() { need_logits_ = false; }

  // Adds a result to the report. An error of the model only.
  absl::Status Check(const RequestResult& result);

  const VerifyReport& report() const { return report_; }

 private:
  // One hypothesis of a beam search, with a cache of its own.
  struct Beam {
    model::ContiguousKv kv;
    // Tokens that are not in the cache yet.
    std::vector<TokenId> next;
    std::vector<TokenId> generated;
    double score = 0;
    std::vector<float> logits;
  };

  absl::Status CheckSample(const Request& request, const Generated& output, uint32_t sample);
  absl::Status CheckBeams(const RequestResult& result);
  absl::Status CheckRound(const Request& request, const BeamRound& round, size_t number,
                          std::vector<Beam>& beams);
  // Logits behind each of `tokens` beginning with `first_wanted`.
  absl::StatusOr<std::vector<float>> Compute(model::ContiguousKv& kv,
                                             const std::vector<TokenId>& tokens,
                                             size_t first_wanted);
  void CompareLogits(const Request& request, std::span<const float> recorded,
                     std::span<const float> reference, const std::string& where);
  void CompareChoice(const Request& request, bool same, double margin, const std::string& where);
  void Note(const Request& request, const std::string& what);

  model::Transformer& model_;
  const float tolerance_;
  bool need_logits_ = true;
  VerifyReport report_;
};

// Checks results on several threads, each with a model of its own from `make_model`.
absl::StatusOr<VerifyReport> VerifyResults(
    const std::vector<RequestResult>& results, uint32_t threads,
    const std::function<absl::StatusOr<std::unique_ptr<model::Transformer>>()>& make_model);

// Rounding to expect between two orders of summation, by how keys and values are stored: storing in
// 16 bits turns a difference in the last bit into one of the stored precision.
float VerifyTolerance(kernels::DType kv_dtype);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_VERIFIER_H_
