// The seam between the model and wherever keys and values live.
#ifndef QUIRE_WORKER_MODEL_KV_ATTENTION_H_
#define QUIRE_WORKER_MODEL_KV_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/model/model_config.h"

namespace quire::model {

// New tokens of one sequence in a launch: rows [first_row, first_row + rows) of the batch, at
// positions first_position, first_position + 1, ...
struct LaunchSequence {
  int32_t first_row = 0;
  int32_t rows = 0;
  int32_t first_position = 0;

  // Tokens of the sequence whose keys and values exist after the launch.
  int32_t kv_length() const { return first_position + rows; }
};

// What one launch of the model computes. Sequences lie one after another and cover all rows.
struct LaunchBatch {
  std::vector<TokenId> tokens;
  std::vector<LaunchSequence> sequences;
  // Rows whose logits are wanted, ascending.
  std::vector<int32_t> logit_rows;

  int32_t rows() const { return static_cast<int32_t>(tokens.size()); }

  // Appends a sequence's new tokens; returns the row of the first.
  int32_t Add(int32_t first_position, const TokenId* first, int32_t count) {
    const int32_t row = rows();
    tokens.insert(tokens.end(), first, first + count);
    sequences.push_back({.first_row = row, .rows = count, .first_position = first_position});
    return row;
  }
};

// Rows of one layer: q and out are [rows][q_heads][head_dim], k and v [rows][kv_heads][head_dim].
struct AttentionRows {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;
};

// Keeps keys and values and attends over them. Set up for one batch before each launch.
class KvAttention {
 public:
  virtual ~KvAttention() = default;

  // Stores the new rows of `layer`, then lets every query see the keys up to its own position
  // inside the layer's window. Called once per layer, in order.
  virtual absl::Status Run(int32_t layer, const AttentionRows& rows) = 0;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_KV_ATTENTION_H_
