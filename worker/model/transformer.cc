#include "worker/model/transformer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire::model {
namespace {

size_t Elements(int32_t rows, int32_t width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

// Loads one matrix after another; after the first error it does nothing.
class Loader {
 public:
  explicit Loader(WeightSource& source) : source_(source) {}

  Linear Matrix(std::string_view name, int32_t out, int32_t in) {
    return Linear(Tensor(name, out, in), out, in);
  }

  // A shard's outputs, or its inputs, of a matrix.
  Linear Outputs(const Shard& shard, std::string_view name, int32_t out, int32_t in) {
    return Linear(RowsOf(shard, Tensor(name, out, in), out, in), out / shard.ranks, in);
  }

  Linear Inputs(const Shard& shard, std::string_view name, int32_t out, int32_t in) {
    return Linear(ColumnsOf(shard, Tensor(name, out, in), out, in), out, in / shard.ranks);
  }

  std::vector<float> Vector(std::string_view name, int32_t width) { return Tensor(name, 1, width); }

  const absl::Status& status() const { return status_; }

 private:
  std::vector<float> Tensor(std::string_view name, int64_t rows, int64_t columns) {
    if (!status_.ok()) return std::vector<float>(static_cast<size_t>(rows * columns));
    absl::StatusOr<std::vector<float>> values = source_.Load(name, rows, columns);
    if (values.ok() && values->size() == static_cast<size_t>(rows * columns)) {
      return *std::move(values);
    }
    status_ =
        values.ok()
            ? absl::InvalidArgumentError(absl::StrCat(std::string(name), " has ", values->size(),
                                                      " values, not ", rows, " x ", columns))
            : values.status();
    return std::vector<float>(static_cast<size_t>(rows * columns));
  }

  WeightSource& source_;
  absl::Status status_;
};

}  // namespace

Transformer::Transformer(const ModelConfig& config, const Shard& shard, AllReduce* reduce)
    : config_(config),
      shard_(shard),
      part_(PartOf(config, shard.ranks)),
      reduce_(reduce),
      rope_(config.head_dim, config.rope_theta) {}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Create(const ModelConfig& config,
                                                                 WeightSource& weights) {
  return Create(config, weights, Shard(), nullptr);
}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::CreateShard(const ModelConfig& config,
                                                                      WeightSource& weights,
                                                                      const Shard& shard,
                                                                      AllReduce& reduce) {
  return Create(config, weights, shard, &reduce);
}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Create(const ModelConfig& config,
                                                                 WeightSource& weights,
                                                                 const Shard& shard,
                                                                 AllReduce* reduce) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  if (absl::Status status = ValidateShards(config, shard.ranks); !status.ok()) return status;
  std::unique_ptr<Transformer> model(new Transformer(config, shard, reduce));
  model->fingerprint_ = Fingerprint(config, weights.identity());
  if (absl::Status status = model->Load(weights); !status.ok()) return status;
  return model;
}

absl::Status Transformer::Load(WeightSource& weights) {
  Loader loader(weights);
  embedding_ = loader.Matrix("model.embed_tokens.weight", config_.vocabulary, config_.hidden);
  if (!config_.tied_head) {
    head_ = loader.Matrix("lm_head.weight", config_.vocabulary, config_.hidden);
  }
  final_norm_ = loader.Vector("model.norm.weight", config_.hidden);
  if (!loader.status().ok()) return loader.status();
  for (int32_t layer = 0; layer < config_.layers; ++layer) {
    if (absl::Status status = LoadLayer(weights, layer); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Transformer::LoadLayer(WeightSource& weights, int32_t index) {
  Loader loader(weights);
  const std::string prefix = absl::StrCat("model.layers.", index, ".");
  const auto outputs = [&](const char* name, int32_t out, int32_t in) {
    return loader.Outputs(shard_, absl::StrCat(prefix, name, ".weight"), out, in);
  };
  const auto inputs = [&](const char* name, int32_t out, int32_t in) {
    return loader.Inputs(shard_, absl::StrCat(prefix, name, ".weight"), out, in);
  };
  Layer layer;
  layer.input_norm = loader.Vector(prefix + "input_layernorm.weight", config_.hidden);
  layer.q = outputs("self_attn.q_proj", config_.q_width(), config_.hidden);
  layer.k = outputs("self_attn.k_proj", config_.kv_width(), config_.hidden);
  layer.v = outputs("self_attn.v_proj", config_.kv_width(), config_.hidden);
  layer.o = inputs("self_attn.o_proj", config_.hidden, config_.q_width());
  layer.ffn_norm = loader.Vector(prefix + "post_attention_layernorm.weight", config_.hidden);
  layer.gate = outputs("mlp.gate_proj", config_.ffn, config_.hidden);
  layer.up = outputs("mlp.up_proj", config_.ffn, config_.hidden);
  layer.down = inputs("mlp.down_proj", config_.hidden, config_.ffn);
  layers_.push_back(std::move(layer));
  return loader.status();
}

absl::Status Transformer::Forward(const LaunchBatch& batch, KvAttention& attention,
                                  std::vector<float>& logits) {
  if (absl::Status status = Embed(batch); !status.ok()) return status;
  const int32_t rows = batch.rows();
  for (int32_t index = 0; index < config_.layers; ++index) {
    if (absl::Status status = Attend(index, rows, attention); !status.ok()) return status;
    absl::Status status = FeedForward(layers_[static_cast<size_t>(index)], rows);
    if (!status.ok()) return status;
  }
  ComputeLogits(batch, logits);
  return absl::OkStatus();
}

absl::Status Transformer::Embed(const LaunchBatch& batch) {
  const int32_t rows = batch.rows();
  act_.x.resize(Elements(rows, config_.hidden));
  for (int32_t row = 0; row < rows; ++row) {
    const TokenId token = batch.tokens[static_cast<size_t>(row)];
    if (token >= static_cast<TokenId>(config_.vocabulary)) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is outside the vocabulary of ", config_.vocabulary));
    }
    const float* source = embedding_.row(static_cast<int32_t>(token));
    std::copy_n(source, config_.hidden, act_.x.begin() + int64_t{row} * config_.hidden);
  }
  act_.positions.resize(static_cast<size_t>(rows));
  for (const LaunchSequence& sequence : batch.sequences) {
    for (int32_t i = 0; i < sequence.rows; ++i) {
      act_.positions[static_cast<size_t>(sequence.first_row + i)] = sequence.first_position + i;
    }
  }
  return absl::OkStatus();
}

absl::Status Transformer::Attend(int32_t index, int32_t rows, KvAttention& attention) {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  act_.normed.resize(act_.x.size());
  act_.q.resize(Elements(rows, part_.q_width()));
  act_.k.resize(Elements(rows, part_.kv_width()));
  act_.v.resize(Elements(rows, part_.kv_width()));
  act_.attended.resize(act_.q.size());
  act_.projected.resize(act_.x.size());
  RmsNorm(act_.x.data(), rows, layer.input_norm, config_.norm_epsilon, act_.normed.data());
  layer.q.Apply(act_.normed.data(), rows, act_.q.data());
  layer.k.Apply(act_.normed.data(), rows, act_.k.data());
  layer.v.Apply(act_.normed.data(), rows, act_.v.data());
  rope_.Apply(act_.positions, part_.q_heads, act_.q.data());
  rope_.Apply(act_.positions, part_.kv_heads, act_.k.data());
  const AttentionRows tensors{act_.q.data(), act_.k.data(), act_.v.data(), act_.attended.data()};
  if (absl::Status status = attention.Run(index, tensors); !status.ok()) return status;
  layer.o.Apply(act_.attended.data(), rows, act_.projected.data());
  return AddProjected();
}

absl::Status Transformer::AddProjected() {
  if (reduce_ != nullptr) {
    if (absl::Status status = reduce_->Sum(act_.projected); !status.ok()) {
      return status;
    }
  }
  AddInPlace(act_.x, act_.projected);
  return absl::OkStatus();
}

absl::Status Transformer::FeedForward(const Layer& layer, int32_t rows) {
  act_.gate.resize(Elements(rows, part_.ffn));
  act_.up.resize(act_.gate.size());
  RmsNorm(act_.x.data(), rows, layer.ffn_norm, config_.norm_epsilon, act_.normed.data());
  layer.gate.Apply(act_.normed.data(), rows, act_.gate.data());
  layer.up.Apply(act_.normed.data(), rows, act_.up.data());
  SwiGlu(act_.gate, act_.up);
  layer.down.Apply(act_.gate.data(), rows, act_.projected.data());
  return AddProjected();
}

void Transformer::ComputeLogits(const LaunchBatch& batch, std::vector<float>& logits) {
  const auto wanted = static_cast<int32_t>(batch.logit_rows.size());
  act_.normed.resize(Elements(wanted, config_.hidden));
  for (int32_t i = 0; i < wanted; ++i) {
    const int64_t row = batch.logit_rows[static_cast<size_t>(i)];
    RmsNorm(act_.x.data() + row * config_.hidden, 1, final_norm_, config_.norm_epsilon,
            act_.normed.data() + int64_t{i} * config_.hidden);
  }
  logits.resize(Elements(wanted, config_.vocabulary));
  (config_.tied_head ? embedding_ : head_).Apply(act_.normed.data(), wanted, logits.data());
}

}  // namespace quire::model
